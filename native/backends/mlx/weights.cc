#include "native/backends/mlx/weights.h"

#include <algorithm>
#include <set>

#include "native/base/directory.h"
#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/base/word-hash.h"
#include "native/text/quote.h"

namespace eliza::mlx {
namespace {

constexpr char kIndex[] = "model.safetensors.index.json";
constexpr size_t kMostFiles = 4096;

// The files that the index names, in order. Their names come from a stranger: no paths.
std::vector<std::string> indexed_files(const Config& index) {
  std::set<std::string> names;
  for (const auto& [tensor, name] : index.text_members("weight_map")) {
    if (name.find('/') != std::string::npos || !ends_with(name, ".safetensors")) {
      index.reject("weight_map", "a file beside it, NAME.safetensors, for each tensor");
    }
    names.insert(name);
  }
  if (names.empty() || names.size() > kMostFiles) index.reject("weight_map", "the files of the model's tensors");
  return {names.begin(), names.end()};
}

std::vector<std::string> listed_files(const std::string& directory) {
  return list_directory(directory, [](const dirent& entry) { return ends_with(entry.d_name, ".safetensors"); });
}

// What config.json says about quantisation, where it is something that this backend cannot compute with.
void check_quantisation(const Config& config) {
  constexpr char kKnown[] = "affine, as MLX's tools write it (2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128)";
  for (const char* key : {"quantization", "quantization_config"}) {
    const std::optional<Config> settings = config.object(key);
    if (!settings) continue;
    if (settings->has("quant_method")) settings->reject("quant_method", kKnown);
    if (settings->text("mode", "affine") != "affine") settings->reject("mode", kKnown);
  }
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return (text.empty() ? "[" : text) + "]";
}

Weights::Weights(const std::string& directory, const Config& config)
    : directory_(directory), config_file_(config.file()), fingerprint_(kWordHashSeed) {
  check_quantisation(config);
  const std::optional<Config> index = Config::read_optional(directory, kIndex);
  for (const std::string& name : index ? indexed_files(*index) : listed_files(directory)) {
    add_file(directory + "/" + name);
  }
  arrays_.resize(files_.size());
}

void Weights::add_file(const std::string& path) {
  SafetensorsHeader header = check_safetensors(path);
  fingerprint_ = word_hash(fingerprint_, &header.fingerprint, sizeof header.fingerprint);
  for (auto& [name, info] : header.tensors) {
    const auto [tensor, added] = tensors_.try_emplace(name, Tensor{files_.size(), std::move(info)});
    if (!added) {
      throw Error(ELIZA_ERR_BUNDLE_INVALID, path + ": the tensor '" + shown(name) + "' is also in " +
                                                files_[tensor->second.file] + "; remove one of the files");
    }
    bytes_ += tensor->second.info.bytes;
    quantised_ = quantised_ || ends_with(name, ".scales");
  }
  files_.push_back(path);
}

void Weights::fail(const std::string& name, const std::string& problem) const {
  const auto tensor = tensors_.find(name);
  const std::string& file = tensor != tensors_.end() ? files_[tensor->second.file]
                            : files_.size() == 1     ? files_.front()
                                                     : directory_;
  throw Error(ELIZA_ERR_BUNDLE_INVALID, file + ": the tensor '" + name + "' " + problem);
}

const TensorInfo& Weights::info(const std::string& name) const {
  const auto tensor = tensors_.find(name);
  if (tensor == tensors_.end()) {
    fail(name, "is missing; the model that " + config_file_ + " describes has one: download it again");
  }
  return tensor->second.info;
}

mx::array Weights::array_of(const std::string& name) {
  const size_t file = tensors_.at(name).file;
  if (!arrays_[file]) arrays_[file] = mx::load_safetensors(files_[file]).first;
  const auto array = arrays_[file]->find(name);
  if (array == arrays_[file]->end()) fail(name, "is gone: the file changed while it was read");
  return array->second;
}

mx::array Weights::take(const std::string& name, std::initializer_list<Axis> shape) {
  std::vector<int64_t> sizes;
  std::string keys;
  for (const Axis& axis : shape) {
    sizes.push_back(axis.size);
    keys += (keys.empty() ? "" : ", ") + std::string(axis.key);
  }
  if (info(name).shape != sizes) {
    fail(name, "has the shape " + shape_text(info(name).shape) + ", where " + config_file_ + " makes it " +
                   shape_text(sizes) + " (" + keys + ")");
  }
  return take_floats(name, sizes);
}

mx::array Weights::take_floats(const std::string& name, const std::vector<int64_t>& shape) {
  const TensorInfo& tensor = info(name);
  if (tensor.dtype != "F32" && tensor.dtype != "F16" && tensor.dtype != "BF16") {
    fail(name, "is of type " + tensor.dtype + ", where F32, F16 or BF16 are known" +
                   (tensor.dtype == "U32" ? "; a quantised one has .scales and .biases beside it" : ""));
  }
  if (tensor.shape != shape) {
    fail(name, "has the shape " + shape_text(tensor.shape) + ", where it must be " + shape_text(shape));
  }
  const mx::array array = array_of(name);
  return keep(widen_ ? mx::astype(array, mx::float32) : array);
}

mx::array Weights::take_packed(const std::string& name) {
  if (info(name).dtype != "U32") fail(name, "is of type " + info(name).dtype + ", where packed weights are U32");
  return keep(array_of(name));
}

const mx::array& Weights::keep(const mx::array& array) {
  kept_.push_back(array);
  return kept_.back();
}

}  // namespace eliza::mlx
