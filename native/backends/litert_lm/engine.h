// A model that the runtime has loaded, shared by all streams that want the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "native/backends/litert_lm/accelerator.h"
#include "native/backends/litert_lm/floor.h"
#include "native/backends/litert_lm/library.h"
#include "native/backends/litert_lm/vocabulary.h"
#include "native/base/error.h"
#include "native/base/live-count.h"

namespace eliza::litert_lm {

struct EngineSettings {
  std::string model_path;
  Rung rung;                 // where it runs
  int32_t context_size = 0;  // tokens; 0: the model's own
  int32_t threads = 1;       // on a CPU
};

// Usable from any thread. Functions throw Error.
class Engine {
 public:
  Engine(const Library& library, const EngineSettings& settings);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Api& api() const { return api_; }
  LiteRtLmEngine* get() const { return engine_; }
  const std::shared_ptr<Floor>& floor() const { return floor_; }
  const std::string& device() const { return device_; }
  int32_t capacity() const { return capacity_; }  // tokens of context; 0: the runtime does not tell

  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  void find_capacity(const EngineSettings& settings);

  const LiveCount live_{Live::kModels};
  const Api& api_;
  const std::string model_path_;
  const std::string device_;
  const std::shared_ptr<Floor> floor_ = std::make_shared<Floor>();
  LiteRtLmEngine* engine_ = nullptr;
  int32_t capacity_ = 0;
  std::optional<Vocabulary> vocabulary_;
};

// What to tell of a model that the runtime does not load, and gives `reason` for.
Error load_failure(const EngineSettings& settings, const std::string& reason);

// The engine with these settings: loaded once for all who ask, within `limit`, and freed with the last of them.
std::shared_ptr<const Engine> acquire_engine(const Library& library, const EngineSettings& settings,
                                             std::chrono::seconds limit);

// Any engine that has this file loaded, for who needs its vocabulary; nullptr where there is none.
std::shared_ptr<const Engine> find_engine(const std::string& model_path);

}  // namespace eliza::litert_lm
