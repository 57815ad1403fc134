#include "native/backends/llama_cpp/model-cache.h"

#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>

#include "native/backends/llama_cpp/runtime.h"
#include "native/base/error.h"

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

using FileId = std::tuple<dev_t, ino_t, off_t, time_t, long>;

FileId file_id(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID,
                "the model file " + path + " cannot be opened: " + std::generic_category().message(errno));
  }
#if defined(__APPLE__)
  const struct timespec modified = info.st_mtimespec;
#else
  const struct timespec modified = info.st_mtim;
#endif
  return {info.st_dev, info.st_ino, info.st_size, modified.tv_sec, modified.tv_nsec};
}

class ModelCache {
 public:
  // Leaked: destroying it at exit would race with threads that still hold models.
  static ModelCache& instance() {
    static ModelCache* cache = new ModelCache;
    return *cache;
  }

  std::shared_ptr<const Model> acquire(const std::string& path, int32_t n_gpu_layers, bool vocab_only) {
    const FileId file = file_id(path);
    if (vocab_only) {
      if (std::shared_ptr<const Model> loaded = find_loaded(file)) return loaded;
    }
    const std::shared_ptr<Slot> slot = slot_for(Key{file, n_gpu_layers, vocab_only});
    const std::lock_guard<std::mutex> lock(slot->mutex);
    std::shared_ptr<const Model> model = slot->get();
    if (model == nullptr) {
      model = std::make_shared<const Model>(path, n_gpu_layers, vocab_only);
      slot->set(model);
    }
    return model;
  }

 private:
  using Key = std::tuple<FileId, int32_t, bool>;  // file, GPU layers, vocabulary only

  // One model, while it is loaded and while it is being loaded.
  struct Slot {
    std::mutex mutex;  // held while loading

    // Its own lock, so that looking for a loaded model does not wait for one that loads.
    std::mutex model_mutex;
    std::weak_ptr<const Model> model;

    void set(const std::shared_ptr<const Model>& loaded) {
      const std::lock_guard<std::mutex> lock(model_mutex);
      model = loaded;
    }
    std::shared_ptr<const Model> get() {
      const std::lock_guard<std::mutex> lock(model_mutex);
      return model.lock();
    }
  };

  std::shared_ptr<Slot> slot_for(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto entry = slots_.begin(); entry != slots_.end();) {
      // Nobody loads it (the table has the only reference) and nobody has it.
      const bool dead = entry->second.use_count() == 1 && entry->second->get() == nullptr;
      entry = dead ? slots_.erase(entry) : std::next(entry);
    }
    std::shared_ptr<Slot>& slot = slots_[key];
    if (slot == nullptr) slot = std::make_shared<Slot>();
    return slot;
  }

  std::shared_ptr<const Model> find_loaded(const FileId& file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, slot] : slots_) {
      if (std::get<0>(key) != file || std::get<2>(key)) continue;
      if (std::shared_ptr<const Model> model = slot->get()) return model;
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace

Model::Model(const std::string& path, int32_t n_gpu_layers, bool vocab_only)
    : path_(path), vocab_only_(vocab_only), header_(check_gguf(path)) {
  start_runtime();
  llama_model_params params = llama_model_default_params();
  // An explicit list, here an empty one: by default llama.cpp would wake every device it was compiled for.
  ggml_backend_dev_t no_devices[] = {nullptr};
  params.devices = no_devices;
  params.n_gpu_layers = n_gpu_layers;
  params.vocab_only = vocab_only;
  params.progress_callback = [](float, void*) { return true; };  // the default one prints dots to the log

  const CallScope scope;
  model_ = llama_model_load_from_file(path.c_str(), params);
  if (model_ == nullptr) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "llama.cpp cannot load the model file " + path + " (" + scope.reason() +
                                              "). Download the model again, or take one that llama.cpp supports");
  }
  try {
    check_vocabulary(vocab(), path);
  } catch (...) {
    llama_model_free(model_);  // no destructor runs for an object that was never finished
    throw;
  }
}

std::shared_ptr<const Model> acquire_model(const std::string& path, int32_t n_gpu_layers) {
  return ModelCache::instance().acquire(path, n_gpu_layers, /*vocab_only=*/false);
}

std::shared_ptr<const Model> acquire_vocabulary(const std::string& path) {
  return ModelCache::instance().acquire(path, /*n_gpu_layers=*/0, /*vocab_only=*/true);
}

}  // namespace eliza::llama_cpp
