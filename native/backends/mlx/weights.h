// The tensors of a model directory: found and checked by their files' headers, then handed out by name.
//
// A layer asks for a tensor by name and by the shape that config.json makes it; a tensor that is missing or of another
// shape is an Error(ELIZA_ERR_BUNDLE_INVALID) that names the file, the tensor and the keys. Nothing is read before
// everything has been asked for: MLX's arrays are lazy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "native/backends/mlx/config.h"
#include "native/backends/mlx/mlx-core.h"
#include "native/backends/mlx/safetensors-check.h"

namespace eliza::mlx {

// A dimension as config.json has it, and the key, or formula of keys, that it follows from.
struct Axis {
  int64_t size;
  const char* key;
};

class Weights {
 public:
  // Checks the headers of the *.safetensors in `directory` (those of model.safetensors.index.json, where there is one).
  // `config` says how they are quantised. Throws Error.
  Weights(const std::string& directory, const Config& config);

  // Bytes of all tensors, as they lie in the files.
  uint64_t bytes() const { return bytes_; }

  // Of everything that the files' headers say.
  uint64_t fingerprint() const { return fingerprint_; }

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }

  // What the header says; throws where there is no such tensor.
  const TensorInfo& info(const std::string& name) const;

  bool quantised() const { return quantised_; }  // any tensor is

  // From here on float tensors come as float32. MLX's CPU build computes with float16 and bfloat16 scales at a tenth of
  // the speed, and rounds more.
  void widen_floats() { widen_ = true; }

  // The array of a tensor with the shape that the config makes it.
  mx::array take(const std::string& name, std::initializer_list<Axis> shape);

  // The same for packed integers, whose shape the caller has checked; and for scales and biases of the shape given.
  mx::array take_packed(const std::string& name);
  mx::array take_floats(const std::string& name, const std::vector<int64_t>& shape);

  // Counts an array that was made from tensors among those to be evaluated at load.
  const mx::array& keep(const mx::array& array);

  // Every array that was handed out or kept.
  const std::vector<mx::array>& kept() const { return kept_; }

  // Throws Error: the file that holds `name`, the tensor, and `problem`.
  [[noreturn]] void fail(const std::string& name, const std::string& problem) const;

 private:
  struct Tensor {
    size_t file;  // index in files_
    TensorInfo info;
  };

  void add_file(const std::string& path);
  mx::array array_of(const std::string& name);

  std::string directory_;
  std::string config_file_;
  std::vector<std::string> files_;
  std::map<std::string, Tensor> tensors_;
  std::vector<std::optional<std::unordered_map<std::string, mx::array>>> arrays_;  // by file, once one was taken
  std::vector<mx::array> kept_;
  uint64_t bytes_ = 0;
  uint64_t fingerprint_;
  bool quantised_ = false;
  bool widen_ = false;
};

// "[2, 3]".
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace eliza::mlx
