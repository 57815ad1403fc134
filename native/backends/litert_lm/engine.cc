#include "native/backends/litert_lm/engine.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "native/backends/litert_lm/bounded.h"
#include "native/backends/litert_lm/owned.h"
#include "native/base/environment.h"
#include "native/base/error.h"
#include "native/base/file-id.h"
#include "native/base/shared-cache.h"

namespace eliza::litert_lm {
namespace {

// What a model of no fixed size gets where nobody says: as the runtime's own tools.
constexpr int32_t kDefaultContext = 4096;

// Empty: nothing is written, and never beside the model.
std::string cache_directory() { return variable("ELIZA_LITERT_CACHE_DIR"); }

// The runtime has no other way to say so.
bool tells_of_memory(const std::string& reason) {
  constexpr const char* kPhrases[] = {"RESOURCE_EXHAUSTED", "ut of memory", "Cannot allocate memory"};
  return std::any_of(std::begin(kPhrases), std::end(kPhrases),
                     [&](const char* phrase) { return reason.find(phrase) != std::string::npos; });
}

using EngineKey = std::tuple<FileId, std::string, int32_t, int32_t>;  // file, device, context, threads

SharedCache<EngineKey, const Engine>& engines() {
  // Leaked: destroying it at exit would race with threads that still hold engines.
  static SharedCache<EngineKey, const Engine>& cache = *new SharedCache<EngineKey, const Engine>;
  return cache;
}

}  // namespace

// The file's header has been read, and its size is the one that the header gives: it is the last to blame.
Error load_failure(const EngineSettings& settings, const std::string& reason) {
  const std::string failure = "LiteRT-LM cannot load the model file " + settings.model_path + " on the " +
                              settings.rung.device + " (" + reason + "); ";
  if (tells_of_memory(reason)) {
    return Error(ELIZA_ERR_OOM, failure + "free some memory, or take a smaller model or context_size");
  }
  const std::string cache = cache_directory();
  if (!cache.empty() && ::access(cache.c_str(), W_OK | X_OK) != 0) {
    return Error(ELIZA_ERR_INVALID_ARG,
                 failure + "make the directory that ELIZA_LITERT_CACHE_DIR names, or name another, or unset it");
  }
  if (settings.rung.accelerator != Accelerator::kCpu) {
    return Error(ELIZA_ERR_FFI_FAULT, failure +
                                          "update the device's driver, take a model that is made for the device, or "
                                          "set ELIZA_LITERT_ACCELERATOR to another accelerator");
  }
  return Error(ELIZA_ERR_BUNDLE_INVALID,
               failure + "take a model that this LiteRT-LM supports; its sha256 tells whether this one arrived whole");
}

Engine::Engine(const Library& library, const EngineSettings& settings)
    : api_(library.api), model_path_(settings.model_path), device_(settings.rung.device) {
  find_capacity(settings);
  const Owned<LiteRtLmEngineSettings> options(
      api_.engine_settings_create(model_path_.c_str(), accelerator_name(settings.rung.accelerator), nullptr, nullptr),
      api_.engine_settings_delete);
  if (options == nullptr) throw load_failure(settings, last_error(api_));
  if (capacity_ > 0) api_.engine_settings_set_max_num_tokens(options.get(), capacity_);
  const std::string cache = cache_directory();
  api_.engine_settings_set_cache_dir(options.get(), cache.empty() ? ":nocache" : cache.c_str());
  if (settings.rung.accelerator == Accelerator::kCpu && api_.engine_settings_set_num_threads != nullptr) {
    api_.engine_settings_set_num_threads(options.get(), settings.threads);
  }
  if (!settings.rung.dispatch_dir.empty() && api_.engine_settings_set_litert_dispatch_lib_dir != nullptr) {
    api_.engine_settings_set_litert_dispatch_lib_dir(options.get(), settings.rung.dispatch_dir.c_str());
  }
  engine_ = api_.engine_create(options.get());
  if (engine_ == nullptr) throw load_failure(settings, last_error(api_));
  try {
    vocabulary_.emplace(api_, engine_);
  } catch (...) {
    api_.engine_delete(engine_);  // no destructor runs for an object that was never finished
    throw;
  }
}

Engine::~Engine() { api_.engine_delete(engine_); }

// The runtime clamps a larger context to the model's without a word, so the model is asked.
void Engine::find_capacity(const EngineSettings& settings) {
  capacity_ = settings.context_size;
  if (api_.loaded_file_create == nullptr || api_.loaded_file_max_context_tokens == nullptr) return;
  const Owned<LiteRtLmLoadedFile> file(api_.loaded_file_create(model_path_.c_str()), api_.loaded_file_delete);
  if (file == nullptr) return;  // engine_create says why
  const uint32_t most = api_.loaded_file_max_context_tokens(file.get());
  if (most == 0 || most > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) return;
  const bool any_size =
      api_.loaded_file_is_dynamic_context != nullptr && api_.loaded_file_is_dynamic_context(file.get());
  const int32_t own = any_size ? std::min(kDefaultContext, static_cast<int32_t>(most)) : static_cast<int32_t>(most);
  capacity_ = settings.context_size > 0 ? std::min(settings.context_size, static_cast<int32_t>(most)) : own;
  const char* soc = settings.rung.accelerator == Accelerator::kNpu && api_.loaded_file_modality_soc_name != nullptr
                        ? api_.loaded_file_modality_soc_name(file.get(), 0)
                        : nullptr;
  if (soc != nullptr && !same_soc(soc, settings.rung.soc)) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + model_path_ + " is compiled for the SoC " + soc +
                                              ", and this device has " + settings.rung.soc +
                                              ": the NPU would not run it; take the model for this SoC");
  }
}

std::shared_ptr<const Engine> acquire_engine(const Library& library, const EngineSettings& settings,
                                             std::chrono::seconds limit) {
  const EngineKey key{file_id(settings.model_path), settings.rung.device, settings.context_size, settings.threads};
  return engines().acquire(key, [&] {
    const auto made =
        run_bounded(limit, [&library, settings] { return std::make_shared<const Engine>(library, settings); });
    if (!made) throw timed_out("loaded the model file " + settings.model_path, limit);
    return *made;
  });
}

std::shared_ptr<const Engine> find_engine(const std::string& model_path) {
  const FileId file = file_id(model_path);
  return engines().find([&](const EngineKey& key) { return std::get<0>(key) == file; });
}

}  // namespace eliza::litert_lm
