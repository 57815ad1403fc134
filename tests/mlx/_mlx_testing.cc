// For the tests of the MLX backend: its models, caches and checks without a session around them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "native/backends/mlx/config.h"
#include "native/backends/mlx/kv-cache.h"
#include "native/backends/mlx/layers.h"
#include "native/backends/mlx/mlx-core.h"
#include "native/backends/mlx/model.h"
#include "native/backends/mlx/safetensors-check.h"
#include "native/backends/mlx/weights.h"
#include "tests/support/status-errors.h"

namespace py = pybind11;

namespace {

namespace mx = ::mlx::core;
using eliza::mlx::Config;
using eliza::mlx::KvCache;
using eliza::mlx::Model;
using eliza::mlx::Weights;

std::vector<float> floats(const mx::array& array) {
  mx::array flat = mx::contiguous(mx::astype(mx::flatten(array), mx::float32));
  flat.eval();
  return {flat.data<float>(), flat.data<float>() + flat.size()};
}

class TestModel {
 public:
  explicit TestModel(const std::string& directory, bool widen)
      : config_(Config::read(directory)), weights_(directory, config_) {
    if (widen) weights_.widen_floats();
    model_ = eliza::mlx::make_model(config_, weights_);
    mx::eval(weights_.kept());
    caches_ = model_->new_caches();
  }

  // The logits behind each of the tokens, which follow those of former calls.
  std::vector<std::vector<float>> logits(const std::vector<int32_t>& ids) {
    const int count = static_cast<int>(ids.size());
    const mx::array activations = model_->forward(mx::array(ids.begin(), {1, count}), &caches_);
    const std::vector<float> all = floats(model_->logits(activations));
    std::vector<std::vector<float>> rows;
    const std::ptrdiff_t width = model_->vocab_size();
    for (int i = 0; i < count; ++i) rows.emplace_back(all.begin() + i * width, all.begin() + (i + 1) * width);
    return rows;
  }

  bool truncate(int count) {
    for (const KvCache& cache : caches_) {
      if (!cache.can_truncate(count)) return false;
    }
    for (KvCache& cache : caches_) cache.truncate(count);
    return true;
  }

  // What a slot does: the rows in their order, and back.
  void store_and_restore() {
    for (KvCache& cache : caches_) {
      const auto rows = cache.ordered();
      const int offset = cache.offset();
      if (rows) cache.restore(rows->first, rows->second, offset);
    }
  }

  std::vector<std::pair<int, int>> cached_rows() const {
    std::vector<std::pair<int, int>> rows;
    for (const KvCache& cache : caches_) {
      const auto ordered = cache.ordered();
      rows.emplace_back(cache.offset(), ordered ? ordered->first.shape(2) : 0);
    }
    return rows;
  }

  void clear() { caches_ = model_->new_caches(); }

 private:
  Config config_;
  Weights weights_;
  std::unique_ptr<Model> model_;
  std::vector<KvCache> caches_;
};

// How far a packed matrix is from the same one unpacked: in products with x, and in the rows of an embedding.
std::pair<float, float> quantisation_error(const std::string& directory, int out, int in) {
  const Config config = Config::read(directory);
  Weights weights(directory, config);
  const eliza::mlx::Matrix packed(weights, "packed", {out, "out"}, {in, "in"});
  const eliza::mlx::Matrix plain(weights, "plain", {out, "out"}, {in, "in"});
  const mx::array x = mx::random::normal({1, 3, in}, mx::random::key(1));
  const mx::array rows = mx::array({1, out - 1, 0, 1});
  const auto distance = [](const mx::array& a, const mx::array& b) { return mx::max(mx::abs(a - b)).item<float>(); };
  return {distance(packed.times(x), plain.times(x)), distance(packed.rows(rows), plain.rows(rows))};
}

// A directory with a matrix, packed by MLX itself and unpacked again.
void save_quantised(const std::string& directory, int out, int in, int bits, int group_size) {
  const mx::array matrix = mx::random::normal({out, in}, mx::random::key(2));
  const std::vector<mx::array> packed = mx::quantize(matrix, group_size, bits);
  const mx::array plain = mx::dequantize(packed[0], packed[1], packed[2], group_size, bits);
  mx::save_safetensors(directory + "/model.safetensors", {{"packed.weight", packed[0]},
                                                          {"packed.scales", packed[1]},
                                                          {"packed.biases", packed[2]},
                                                          {"plain.weight", plain}});
}

}  // namespace

PYBIND11_MODULE(_mlx_testing, m) {
  eliza::translate_errors();

  py::class_<TestModel>(m, "Model")
      .def(py::init<const std::string&, bool>(), py::arg("directory"), py::arg("widen") = false)
      .def("logits", &TestModel::logits)
      .def("truncate", &TestModel::truncate)
      .def("store_and_restore", &TestModel::store_and_restore)
      .def("cached_rows", &TestModel::cached_rows)
      .def("clear", &TestModel::clear);
  m.def("quantisation_error", quantisation_error);
  m.def("save_quantised", save_quantised);
  m.def("check_safetensors", [](const std::string& path) {
    std::vector<std::string> names;
    for (const auto& [name, info] : eliza::mlx::check_safetensors(path).tensors) names.push_back(name);
    return names;
  });
}
