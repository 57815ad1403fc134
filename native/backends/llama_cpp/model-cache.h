// The weights of a process: each model file is loaded once, however many sessions use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "llama.h"
#include "native/backends/llama_cpp/gguf-check.h"
#include "native/backends/llama_cpp/stop-flag.h"
#include "native/base/live-count.h"

namespace eliza::llama_cpp {

// A loaded model. Immutable, so usable from any thread.
class Model {
 public:
  // Checks and loads the file; with layers other than 0, onto the GPUs there are (gpu.h). Throws Error,
  // ELIZA_ERR_CANCELLED where `stop` is set meanwhile.
  Model(const std::string& path, int32_t n_gpu_layers, bool vocab_only, const StopFlag* stop);
  ~Model() { llama_model_free(model_); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  llama_model* get() const { return model_; }
  const llama_vocab* vocab() const { return llama_model_get_vocab(model_); }
  const GgufHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  bool vocab_only() const { return vocab_only_; }
  // Where its layers compute: the GPUs that hold some of them, else "cpu".
  const std::string& device() const { return device_; }
  bool on_gpu() const { return on_gpu_; }

 private:
  const LiveCount live_{Live::kModels};
  std::string path_;
  bool vocab_only_;
  GgufHeader header_;
  std::string device_ = "cpu";
  bool on_gpu_ = false;
  llama_model* model_ = nullptr;
};

// The model in `path`, shared with every other user of the same file and GPU layers, and freed with the last of them.
// A file is the same as long as its inode, size and modification time are. Concurrent calls for one file load it once,
// those for different files load side by side. Throws Error.
//
// ELIZA_ERR_CANCELLED soon after `stop` (null: none) is set and wake_waiting_loads called; somebody else who waits for
// the same file then loads it.
std::shared_ptr<const Model> acquire_model(const std::string& path, int32_t n_gpu_layers,
                                           const StopFlag* stop = nullptr);

// So that who waits for another's load looks at its flag.
void wake_waiting_loads();

// The same for who needs the vocabulary only: the model, where it is loaded already, else one without weights.
std::shared_ptr<const Model> acquire_vocabulary(const std::string& path);

}  // namespace eliza::llama_cpp
