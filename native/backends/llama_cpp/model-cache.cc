#include "native/backends/llama_cpp/model-cache.h"

#include <tuple>
#include <vector>

#include "native/backends/llama_cpp/gpu.h"
#include "native/backends/llama_cpp/runtime.h"
#include "native/base/error.h"
#include "native/base/file-id.h"
#include "native/base/shared-cache.h"

namespace eliza::llama_cpp {
namespace {

// Rejects what llama.cpp's tokenizer would later assert on.
void check_vocabulary(const llama_vocab* vocab, const std::string& path) {
  const auto reject = [&](const std::string& what) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + path + " " + what + ". Convert the model again");
  };
  const enum llama_vocab_type type = llama_vocab_type(vocab);
  if (type == LLAMA_VOCAB_TYPE_NONE || llama_vocab_n_tokens(vocab) <= 0) {
    reject("holds no vocabulary, so it cannot read or write text");
  }
  const bool always_framed = type == LLAMA_VOCAB_TYPE_WPM;
  if ((always_framed || llama_vocab_get_add_bos(vocab)) && llama_vocab_bos(vocab) == LLAMA_TOKEN_NULL) {
    reject("asks for a token at the start of each text, but its vocabulary has none");
  }
  if (llama_vocab_get_add_eos(vocab) && llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL) {
    reject("asks for a token at the end of each text, but its vocabulary has none");
  }
  if (always_framed && llama_vocab_sep(vocab) == LLAMA_TOKEN_NULL) {
    reject("needs a separator token, but its vocabulary has none");
  }
}

using ModelKey = std::tuple<FileId, int32_t, bool>;  // file, GPU layers, vocabulary only

SharedCache<ModelKey, const Model>& models() {
  // Leaked: destroying it at exit would race with threads that still hold models.
  static SharedCache<ModelKey, const Model>& cache = *new SharedCache<ModelKey, const Model>;
  return cache;
}

std::shared_ptr<const Model> acquire(const FileId& file, const std::string& path, int32_t n_gpu_layers, bool vocab_only,
                                     const StopFlag* stop) {
  return models().acquire(
      ModelKey{file, n_gpu_layers, vocab_only},
      [&] { return std::make_shared<const Model>(path, n_gpu_layers, vocab_only, stop); },
      [&] { throw_if_stopped(stop); });
}

}  // namespace

Model::Model(const std::string& path, int32_t n_gpu_layers, bool vocab_only, const StopFlag* stop)
    : path_(path), vocab_only_(vocab_only), header_(check_gguf(path)) {
  start_runtime();
  llama_model_params params = llama_model_default_params();
  // An explicit list, and an empty one for who asks for no layers: by default llama.cpp would wake every device.
  std::vector<ggml_backend_dev_t> devices;
  if (n_gpu_layers != 0 && !vocab_only) devices = gpus().devices;
  on_gpu_ = !devices.empty();
  if (on_gpu_) device_ = device_names(devices);
  devices.push_back(nullptr);
  params.devices = devices.data();
  params.n_gpu_layers = n_gpu_layers;
  params.vocab_only = vocab_only;
  // Returns whether to go on. (The default one prints dots to the log.)
  params.progress_callback = [](float, void* flag) { return !is_stopped(static_cast<const StopFlag*>(flag)); };
  params.progress_callback_user_data = const_cast<StopFlag*>(stop);

  const CallScope scope;
  model_ = llama_model_load_from_file(path.c_str(), params);
  if (model_ == nullptr) {
    throw_if_stopped(stop);
    const std::string reason = scope.reason();
    if (scope.out_of_memory()) {
      throw Error(ELIZA_ERR_OOM, "the model file " + path + " does not fit " + (on_gpu_ ? device_ : "into memory") +
                                     " (" + reason + "); try " + (on_gpu_ ? "fewer n_gpu_layers" : "a smaller model"));
    }
    throw Error(ELIZA_ERR_BUNDLE_INVALID,
                "llama.cpp cannot load the model file " + path + " (" + reason +
                    "). Take one that llama.cpp supports; its sha256 tells whether this one arrived whole");
  }
  try {
    check_vocabulary(vocab(), path);
  } catch (...) {
    llama_model_free(model_);  // no destructor runs for an object that was never finished
    throw;
  }
}

std::shared_ptr<const Model> acquire_model(const std::string& path, int32_t n_gpu_layers, const StopFlag* stop) {
  return acquire(file_id(path), path, n_gpu_layers, /*vocab_only=*/false, stop);
}

std::shared_ptr<const Model> acquire_vocabulary(const std::string& path) {
  const FileId file = file_id(path);
  const auto has_all = [&](const ModelKey& key) { return std::get<0>(key) == file && !std::get<2>(key); };
  if (std::shared_ptr<const Model> loaded = models().find(has_all)) return loaded;
  return acquire(file, path, /*n_gpu_layers=*/0, /*vocab_only=*/true, /*stop=*/nullptr);
}

void wake_waiting_loads() { models().wake(); }

}  // namespace eliza::llama_cpp
