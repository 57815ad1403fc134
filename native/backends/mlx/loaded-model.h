// The weights of a process: each model directory is loaded once, however many sessions use it, by a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "native/backends/mlx/device.h"
#include "native/backends/mlx/model.h"
#include "native/backends/mlx/worker.h"
#include "native/base/live-count.h"
#include "native/text/context-fit.h"
#include "native/text/hf-tokenizer.h"

namespace eliza::mlx {

class LoadedModel {
 public:
  // Checks `directory`, and reads it where there is memory for the weights and such a context. Throws Error.
  LoadedModel(const std::string& directory, Device device, const ContextWish& context);
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  // Every use of MLX goes through it.
  Worker& worker() const { return worker_; }

  const Model& model() const { return *model_; }

  // Its tokenizer.json, read when it is first asked for. Any thread. Throws Error.
  std::shared_ptr<const HfTokenizer> tokenizer() const;

  Device device() const { return *device_; }
  uint64_t fingerprint() const { return fingerprint_; }  // of the config and the tensors' headers
  bool ends_generation(int32_t token) const;

  // The size of a context that fits into memory (context-fit.h). Throws Error.
  uint32_t context_size(ContextWish wish) const;

 private:
  void load(const ContextWish& context);
  void release();

  const LiveCount live_{Live::kModels};
  const std::string directory_;
  std::shared_ptr<const Device> device_;
  std::optional<mx::Stream> stream_;  // the worker's
  std::unique_ptr<Model> model_;
  std::vector<int64_t> end_tokens_;
  uint64_t fingerprint_ = 0;
  mutable std::mutex tokenizer_mutex_;
  mutable std::shared_ptr<const HfTokenizer> tokenizer_;
  mutable Worker worker_;
};

// The model in `directory` on the device that choose_device chooses, shared with every other user of the same files,
// and freed with the last of them; `context` is what it is wanted for. Throws Error.
std::shared_ptr<const LoadedModel> acquire_model(const std::string& directory, const ContextWish& context);

// Tokens computed at once in a prefill. The unit of cancelling, and of the work buffers.
inline constexpr uint32_t kPrefillChunk = 512;

}  // namespace eliza::mlx
