// For the tests of the llama.cpp backend: its session opened directly (not through the selector), its parts, and the
// same generation written straight on llama.h.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "ggml/src/ggml-backend-impl.h"
#include "llama.h"
#include "native/backends/llama_cpp/gguf-check.h"
#include "native/backends/llama_cpp/kv-cache.h"
#include "native/backends/llama_cpp/model-cache.h"
#include "native/backends/llama_cpp/runtime.h"
#include "native/backends/llama_cpp/sampler.h"
#include "native/backends/llama_cpp/session.h"
#include "native/backends/llama_cpp/stop-flag.h"
#include "native/include/eliza-inference-ffi.h"
#include "tests/support/status-errors.h"

namespace py = pybind11;

namespace {

using eliza::check_status;
using eliza::llama_cpp::Model;

eliza_llm_stream_config_t make_config(const py::dict& fields) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  const auto get = [&](const char* name, auto fallback) {
    return fields.contains(name) ? fields[name].cast<decltype(fallback)>() : fallback;
  };
  config.max_tokens = get("max_tokens", config.max_tokens);
  config.temperature = get("temperature", config.temperature);
  config.top_p = get("top_p", config.top_p);
  config.top_k = get("top_k", config.top_k);
  config.repeat_penalty = get("repeat_penalty", config.repeat_penalty);
  config.context_size = get("context_size", config.context_size);
  return config;
}

class DirectSession {
 public:
  DirectSession(const std::string& path, const py::kwargs& fields)
      : session_(std::make_unique<eliza::llama_cpp::Session>(eliza::llama_cpp::acquire_model(path, 0),
                                                             make_config(fields), 0)) {}

  void prefill(const std::vector<int32_t>& tokens) {
    char* error = nullptr;
    check_status(session_->prefill(tokens.data(), tokens.size(), &error), error);
  }

  // The tokens of the whole generation.
  std::vector<int32_t> generate() {
    std::vector<int32_t> generated;
    for (;;) {
      int32_t tokens[32];
      char text[1024];
      size_t count = 0;
      char* error = nullptr;
      const int status = session_->next(tokens, 32, &count, text, sizeof text, nullptr, nullptr, &error);
      check_status(status, error);
      generated.insert(generated.end(), tokens, tokens + count);
      if (status == 1) return generated;
    }
  }

  void set_seed(uint64_t seed) { session_->set_seed(seed); }

  void save(const std::string& path) {
    char* error = nullptr;
    check_status(session_->save_slot(path.c_str(), &error), error);
  }

  void restore(const std::string& path) {
    char* error = nullptr;
    check_status(session_->restore_slot(path.c_str(), &error), error);
  }

 private:
  std::unique_ptr<LlmBackendSession> session_;
};

// Tokens that were decoded. The linker leads llama_decode through here (BUILD.bazel), where it can.
std::atomic<int64_t> decoded_tokens{0};

struct SamplerOptions {
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float repeat_penalty = 1;
  uint32_t seed = 0;
};

// llama.cpp's samplers, in the order of its common/sampling.cpp.
llama_sampler* make_chain(const llama_vocab* vocab, const SamplerOptions& options) {
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(
      chain, llama_sampler_init_penalties(llama_vocab_n_tokens(vocab), 64, options.repeat_penalty, 0.0f, 0.0f));
  if (options.temperature == 0) {
    llama_sampler_chain_add(chain, llama_sampler_init_greedy());
    return chain;
  }
  llama_sampler_chain_add(chain, llama_sampler_init_top_k(options.top_k));
  llama_sampler_chain_add(chain, llama_sampler_init_top_p(options.top_p, 1));
  llama_sampler_chain_add(chain, llama_sampler_init_temp(options.temperature));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(options.seed));
  return chain;
}

// A generation on nothing but llama.h: its defaults, one batch for the prompt, its samplers.
std::vector<int32_t> plain_generation(const std::string& path, std::vector<int32_t> prompt, size_t count,
                                      uint32_t n_ctx, const SamplerOptions& options) {
  eliza::llama_cpp::start_runtime();
  llama_model_params model_params = llama_model_default_params();
  llama_model* model = llama_model_load_from_file(path.c_str(), model_params);
  if (model == nullptr) throw std::runtime_error("the plain loop cannot load " + path);
  llama_context_params context_params = llama_context_default_params();
  context_params.n_ctx = n_ctx;
  context_params.n_batch = static_cast<uint32_t>(prompt.size()) + 1;
  context_params.n_threads = context_params.n_threads_batch = 1;
  llama_context* context = llama_init_from_model(model, context_params);
  const llama_vocab* vocab = llama_model_get_vocab(model);
  llama_sampler* sampler = make_chain(vocab, options);
  for (const int32_t token : prompt) llama_sampler_accept(sampler, token);

  std::vector<int32_t> generated;
  llama_batch batch = llama_batch_get_one(prompt.data(), static_cast<int32_t>(prompt.size()));
  while (generated.size() < count && llama_decode(context, batch) == 0) {
    llama_token token = llama_sampler_sample(sampler, context, -1);
    if (llama_vocab_is_eog(vocab, token)) break;
    generated.push_back(token);
    batch = llama_batch_get_one(&generated.back(), 1);
  }
  llama_sampler_free(sampler);
  llama_free(context);
  llama_model_free(model);
  return generated;
}

// The same model with every weight as F32, unpacked by llama.cpp.
void write_f32(const std::string& source, const std::string& destination) {
  eliza::llama_cpp::start_runtime();
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = 1;
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;
  if (llama_model_quantize(source.c_str(), destination.c_str(), &params) != 0) {
    throw std::runtime_error("llama.cpp cannot unpack " + source);
  }
}

// Logits straight from llama.h, with keys and values of F32 and no approximation of attention.
class PlainLogits {
 public:
  explicit PlainLogits(const std::string& path) {
    eliza::llama_cpp::start_runtime();
    model_.reset(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
    if (model_ == nullptr) throw std::runtime_error("llama.cpp cannot load " + path);
  }

  // Those behind each of the tokens, a context of their own.
  std::vector<std::vector<float>> logits(std::vector<int32_t> tokens) const {
    const auto count = static_cast<uint32_t>(tokens.size());
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = count;
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    const std::unique_ptr<llama_context, decltype(&llama_free)> context(llama_init_from_model(model_.get(), params),
                                                                        &llama_free);
    if (context == nullptr) throw std::runtime_error("llama.cpp cannot set up a context");
    llama_batch batch = llama_batch_get_one(tokens.data(), static_cast<int32_t>(count));
    std::vector<int8_t> all(count, 1);
    batch.logits = all.data();
    if (llama_decode(context.get(), batch) != 0) throw std::runtime_error("llama.cpp failed to decode");
    const int32_t width = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
    std::vector<std::vector<float>> rows;
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
      const float* row = llama_get_logits_ith(context.get(), i);
      rows.emplace_back(row, row + width);
    }
    return rows;
  }

 private:
  std::unique_ptr<llama_model, decltype(&llama_model_free)> model_{nullptr, &llama_model_free};
};

// What the backend's sampler and llama.cpp's chain draw from the same logits, as each token joins the context.
std::pair<std::vector<int32_t>, std::vector<int32_t>> draw_both(const Model& model,
                                                                const std::vector<std::vector<float>>& rows,
                                                                std::vector<int32_t> context, uint64_t seed,
                                                                const SamplerOptions& options) {
  eliza::SamplingSettings settings;
  settings.temperature = options.temperature;
  settings.top_k = options.top_k;
  settings.top_p = options.top_p;
  settings.repeat_penalty = options.repeat_penalty;
  eliza::llama_cpp::Sampler sampler(model.vocab(), settings);
  sampler.set_seed(seed);
  SamplerOptions chain_options = options;
  chain_options.seed = eliza::llama_cpp::fold_seed(seed);
  llama_sampler* chain = make_chain(model.vocab(), chain_options);
  for (const int32_t token : context) llama_sampler_accept(chain, token);

  std::pair<std::vector<int32_t>, std::vector<int32_t>> drawn;
  for (const std::vector<float>& row : rows) {
    std::vector<llama_token_data> candidates(row.size());
    for (size_t i = 0; i < row.size(); ++i) candidates[i] = {static_cast<llama_token>(i), row[i], 0.0f};
    llama_token_data_array array = {candidates.data(), candidates.size(), -1, false};
    llama_sampler_apply(chain, &array);
    drawn.second.push_back(array.data[array.selected].id);
    llama_sampler_accept(chain, drawn.second.back());

    std::vector<float> logits = row;
    drawn.first.push_back(sampler.sample(logits.data(), context.data(), context.size()));
    if (logits != row) throw std::runtime_error("the sampler changed the logits");
    context.push_back(drawn.second.back());
  }
  llama_sampler_free(chain);
  return drawn;
}

// A GPU that ends the process when somebody wakes it: its buffers, its memory and its backend are all that there is to
// ask of a device besides what it is.
ggml_backend_reg_t fake_gpu() {
  static ggml_backend_device device = {};
  static ggml_backend_reg registry = {};
  device.iface.get_name = [](ggml_backend_dev_t) { return "FakeGPU"; };
  device.iface.get_description = [](ggml_backend_dev_t) { return "a GPU that must not be woken"; };
  device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
  device.iface.get_memory = [](ggml_backend_dev_t, size_t*, size_t*) { std::abort(); };
  device.iface.get_props = [](ggml_backend_dev_t, ggml_backend_dev_props*) { std::abort(); };
  device.iface.init_backend = [](ggml_backend_dev_t, const char*) -> ggml_backend_t { std::abort(); };
  device.iface.get_buffer_type = [](ggml_backend_dev_t) -> ggml_backend_buffer_type_t { std::abort(); };
  device.reg = &registry;
  registry.api_version = GGML_BACKEND_API_VERSION;
  registry.iface.get_name = [](ggml_backend_reg_t) { return "Fake"; };
  registry.iface.get_device_count = [](ggml_backend_reg_t) -> size_t { return 1; };
  registry.iface.get_device = [](ggml_backend_reg_t, size_t) { return &device; };
  registry.iface.get_proc_address = [](ggml_backend_reg_t, const char*) -> void* { return nullptr; };
  return &registry;
}

}  // namespace

#if defined(__linux__)
extern "C" int32_t __real_llama_decode(llama_context* context, llama_batch batch);
extern "C" int32_t __wrap_llama_decode(llama_context* context, llama_batch batch) {
  decoded_tokens += batch.n_tokens;
  return __real_llama_decode(context, batch);
}
#endif

PYBIND11_MODULE(_llama_cpp_testing, m) {
  eliza::translate_errors();

  py::class_<SamplerOptions>(m, "SamplerOptions")
      .def(py::init([](float temperature, int32_t top_k, float top_p, float repeat_penalty, uint32_t seed) {
             return SamplerOptions{temperature, top_k, top_p, repeat_penalty, seed};
           }),
           py::kw_only(), py::arg("temperature") = 0.0f, py::arg("top_k") = 0, py::arg("top_p") = 1.0f,
           py::arg("repeat_penalty") = 1.0f, py::arg("seed") = 0u);
  m.def("plain_generation", plain_generation, py::arg("path"), py::arg("prompt"), py::arg("count"), py::kw_only(),
        py::arg("n_ctx") = 1024u, py::arg("options") = SamplerOptions{});
  m.def("draw_both", draw_both, py::arg("model"), py::arg("rows"), py::arg("context"), py::arg("seed"),
        py::arg("options"));
  m.def("fold_seed", eliza::llama_cpp::fold_seed);
  m.def("write_f32", write_f32);
  py::class_<PlainLogits>(m, "PlainLogits").def(py::init<const std::string&>()).def("logits", &PlainLogits::logits);

  py::class_<DirectSession>(m, "Session")
      .def(py::init<const std::string&, const py::kwargs&>())
      .def("prefill", &DirectSession::prefill)
      .def("generate", &DirectSession::generate)
      .def("set_seed", &DirectSession::set_seed)
      .def("save", &DirectSession::save)
      .def("restore", &DirectSession::restore);
#if defined(__linux__)
  m.def("decoded_tokens", [] { return decoded_tokens.load(); });
#endif

  py::class_<Model, std::shared_ptr<Model>>(m, "Model")
      .def_property_readonly("address", [](const Model& model) { return reinterpret_cast<uintptr_t>(model.get()); })
      .def_property_readonly("vocab_only", &Model::vocab_only)
      .def_property_readonly("vocab_size", [](const Model& model) { return llama_vocab_n_tokens(model.vocab()); })
      .def_property_readonly("end_tokens", [](const Model& model) {
        std::vector<int32_t> ids;
        for (int32_t id = 0; id < llama_vocab_n_tokens(model.vocab()); ++id) {
          if (llama_vocab_is_eog(model.vocab(), id)) ids.push_back(id);
        }
        return ids;
      });
  const auto mutable_model = [](const std::shared_ptr<const Model>& model) {
    return std::const_pointer_cast<Model>(model);  // pybind11 holds no pointers to const
  };
  using eliza::llama_cpp::StopFlag;
  py::class_<StopFlag>(m, "StopFlag").def(py::init([] { return new StopFlag(false); })).def("set", [](StopFlag& flag) {
    flag = true;
    eliza::llama_cpp::wake_waiting_loads();
  });
  m.def(
      "acquire_model",
      [=](const std::string& path, int32_t layers, const StopFlag* stop) {
        return mutable_model(eliza::llama_cpp::acquire_model(path, layers, stop));
      },
      py::arg("path"), py::arg("n_gpu_layers") = 0, py::arg("stop") = nullptr,
      py::call_guard<py::gil_scoped_release>());
  m.def("load_model", [](const std::string& path, const StopFlag& stop) {
    return std::make_shared<Model>(path, 0, /*vocab_only=*/false, &stop);
  });
  m.def(
      "acquire_vocabulary",
      [=](const std::string& path) { return mutable_model(eliza::llama_cpp::acquire_vocabulary(path)); },
      py::call_guard<py::gil_scoped_release>());
  m.def("register_fake_gpu", [] { ggml_backend_register(fake_gpu()); });
  m.def("plain_loop_with_all_devices",
        [](const std::string& path) { return plain_generation(path, {1, 5}, 1, 256, {}).size(); });
  m.def("cache_bytes",
        [](const Model& model, uint32_t n_ctx) { return eliza::llama_cpp::cache_bytes(model, n_ctx, {}); });

  m.def("check_gguf", [](const std::string& path) {
    const eliza::llama_cpp::GgufHeader header = eliza::llama_cpp::check_gguf(path);
    return py::make_tuple(header.architecture, header.tensor_bytes, header.fingerprint, header.integers);
  });
  m.def("row_bytes", eliza::llama_cpp::gguf_row_bytes);
  // ggml's own answer; None where it has no such type.
  m.def("ggml_row_bytes", [](uint32_t type, int64_t elements) -> std::optional<uint64_t> {
    const ggml_type known = static_cast<ggml_type>(type);
    if (type >= GGML_TYPE_COUNT || ggml_blck_size(known) == 0 || elements % ggml_blck_size(known) != 0) {
      return std::nullopt;
    }
    return ggml_row_size(known, elements);
  });
}
