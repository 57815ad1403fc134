// For the tests of the MLX backend: its session, opened without a bundle around the model directory. A token's text is
// its number between brackets.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mlx/compile.h"
#include "mlx/memory.h"
#include "mlx/primitives.h"
#include "native/backends/mlx/decoder.h"
#include "native/backends/mlx/loaded-model.h"
#include "native/backends/mlx/mlx-core.h"
#include "native/backends/mlx/mlx.h"
#include "native/backends/mlx/sampler.h"
#include "native/backends/mlx/session.h"
#include "native/include/eliza-inference-ffi.h"
#include "tests/support/status-errors.h"

namespace py = pybind11;

namespace {

namespace mx = ::mlx::core;
using eliza::check_status;

// What sessions feed to their models comes through here: it is counted, and a session may be cancelled within a chunk
// of it. The linker leads it here (BUILD.bazel), where it can.
struct Feeding {
  std::atomic<size_t> tokens{0};
  std::atomic<int> chunks_until_cancel{0};
  std::atomic<LlmBackendSession*> cancelled{nullptr};
};
Feeding feeding;

// There is no memory for the text of the `nth` token from now on.
std::atomic<int> tokens_until_failure{0};

std::string piece(int32_t token) {
  if (tokens_until_failure > 0 && --tokens_until_failure == 0) throw std::bad_alloc();
  return "[" + std::to_string(token) + "]";
}

struct Strings {
  std::vector<std::string> kept;
  const char* keep(const py::object& text) { return kept.emplace_back(text.cast<std::string>()).c_str(); }
};

eliza_llm_stream_config_t make_config(const py::dict& fields, Strings* strings) {
  strings->kept.reserve(8);
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  const auto get = [&](const char* name, auto* field) {
    if (fields.contains(name)) *field = fields[name].cast<std::remove_pointer_t<decltype(field)>>();
  };
  const auto get_text = [&](const char* name, const char** field) {
    if (fields.contains(name)) *field = strings->keep(fields[name]);
  };
  get("max_tokens", &config.max_tokens);
  get("temperature", &config.temperature);
  get("top_p", &config.top_p);
  get("top_k", &config.top_k);
  get("repeat_penalty", &config.repeat_penalty);
  get("slot_id", &config.slot_id);
  get("draft_max", &config.draft_max);
  get("n_gpu_layers", &config.n_gpu_layers);
  get("context_size", &config.context_size);
  get_text("prompt_cache_key", &config.prompt_cache_key);
  get_text("cache_type_k", &config.cache_type_k);
  get_text("cache_type_v", &config.cache_type_v);
  return config;
}

class DirectSession {
 public:
  DirectSession(const std::string& directory, const py::kwargs& fields) {
    Strings strings;
    const eliza_llm_stream_config_t config = make_config(fields, &strings);
    py::gil_scoped_release unlocked;
    const eliza::ContextWish wish = eliza::mlx::context_wish(config, 0);
    session_ = std::make_unique<eliza::mlx::Session>(eliza::mlx::acquire_model(directory, wish), config, wish, piece);
  }

  void prefill(const std::vector<int32_t>& tokens) {
    py::gil_scoped_release unlocked;
    char* error = nullptr;
    const int status = session_->prefill(tokens.data(), tokens.size(), &error);
    check_status(status, error);
  }

  // (ended, tokens, text)
  std::tuple<bool, std::vector<int32_t>, std::string> next(size_t tokens_cap, size_t text_cap) {
    py::gil_scoped_release unlocked;
    std::vector<int32_t> tokens(tokens_cap);
    std::string text(text_cap, '\x7f');
    size_t count = 0;
    char* error = nullptr;
    const int status =
        session_->next(tokens.data(), tokens_cap, &count, text.data(), text_cap, nullptr, nullptr, &error);
    check_status(status, error);
    tokens.resize(count);
    text.resize(text.find('\0'));
    return {status == 1, tokens, text};
  }

  int cancel() { return session_->cancel(); }
  // While the `nth` chunk from now on is computed.
  void cancel_in_chunk(int nth) {
    feeding.cancelled = session_.get();
    feeding.chunks_until_cancel = nth;
  }
  int reset() { return session_->reset(); }
  int reset_keep(int32_t n_keep) { return session_->reset_keep(n_keep); }
  int set_seed(uint64_t seed) { return session_->set_seed(seed); }

  void save(const std::string& path) {
    char* error = nullptr;
    const int status = session_->save_slot(path.c_str(), &error);
    check_status(status, error);
  }

  void restore(const std::string& path) {
    char* error = nullptr;
    const int status = session_->restore_slot(path.c_str(), &error);
    check_status(status, error);
  }

  py::dict stats() const {
    const LlmSessionStats stats = session_->stats();
    py::dict result;
    result["device"] = stats.device;
    result["stop_reason"] = stats.stop_reason;
    result["prompt_tokens"] = stats.prompt_tokens;
    result["generated_tokens"] = stats.generated_tokens;
    result["kv_used"] = stats.kv_used;
    result["kv_capacity"] = stats.kv_capacity;
    result["ignored_options"] = stats.ignored_options;
    return result;
  }

  void close() {
    py::gil_scoped_release unlocked;
    session_.reset();
  }

 private:
  std::unique_ptr<LlmBackendSession> session_;
};

// Tokens drawn from the same logits.
std::vector<int32_t> draw(const std::vector<float>& logits, const std::vector<int32_t>& recent, size_t count,
                          uint64_t seed, float temperature, int32_t top_k, float top_p, float repeat_penalty) {
  eliza::SamplingSettings settings;
  settings.temperature = temperature;
  settings.top_k = top_k;
  settings.top_p = top_p;
  settings.repeat_penalty = repeat_penalty;
  eliza::mlx::Sampler sampler(settings);
  sampler.set_seed(seed);
  const mx::array values(logits.begin(), {static_cast<int>(logits.size())});
  std::optional<mx::array> looked_back_on;
  if (!recent.empty()) looked_back_on = mx::array(recent.begin(), {static_cast<int>(recent.size())});
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(sampler.sample(values, i, looked_back_on).item<int32_t>());
  return tokens;
}

}  // namespace

// For the backend, every context here is one that was closed while it opens a stream on it.
const char* llm_backend_context_bundle_dir(const EliInferenceContext*) { return nullptr; }

#if defined(__linux__)
// eliza::mlx::Decoder::feed
extern "C" void __real__ZN5eliza3mlx7Decoder4feedEPKimb(eliza::mlx::Decoder* self, const int32_t* tokens, size_t count,
                                                        bool last);
extern "C" void __wrap__ZN5eliza3mlx7Decoder4feedEPKimb(eliza::mlx::Decoder* self, const int32_t* tokens, size_t count,
                                                        bool last) {
  feeding.tokens += count;
  if (--feeding.chunks_until_cancel == 0) feeding.cancelled.load()->cancel();
  __real__ZN5eliza3mlx7Decoder4feedEPKimb(self, tokens, count, last);
}
#endif

PYBIND11_MODULE(_mlx_session_testing, m) {
  eliza::translate_errors();
  py::class_<DirectSession>(m, "Session")
      .def(py::init<const std::string&, const py::kwargs&>())
      .def("prefill", &DirectSession::prefill)
      .def("next", &DirectSession::next, py::arg("tokens_cap") = 32, py::arg("text_cap") = 1024)
      .def("cancel", &DirectSession::cancel)
      .def("cancel_in_chunk", &DirectSession::cancel_in_chunk)
      .def("reset", &DirectSession::reset)
      .def("reset_keep", &DirectSession::reset_keep)
      .def("set_seed", &DirectSession::set_seed)
      .def("save", &DirectSession::save)
      .def("restore", &DirectSession::restore)
      .def("stats", &DirectSession::stats)
      .def("close", &DirectSession::close);
  m.def("draw", draw, py::arg("logits"), py::arg("recent"), py::arg("count"), py::kw_only(), py::arg("seed") = 0,
        py::arg("temperature") = 1.0f, py::arg("top_k") = 0, py::arg("top_p") = 1.0f, py::arg("repeat_penalty") = 1.0f);
#if defined(__linux__)
  m.def("fed_tokens", [] { return feeding.tokens.load(); });  // by all sessions
#endif
  m.def("fail_text", [](int nth) { tokens_until_failure = nth; });
  m.def("open_on_a_closed_context", [] {
    const eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
    eliza::mlx::factory()->open(nullptr, &config, nullptr);
  });
  m.def("gguf_tensors", [](const std::string& path) { return mx::load_gguf(path).first.size(); });
  m.def("active_memory", [] { return mx::get_active_memory(); });
  m.def("cached_memory", [] { return mx::get_cache_memory(); });
  m.def("peak_memory", [] { return mx::get_peak_memory(); });
  m.def("reset_peak_memory", [] { mx::reset_peak_memory(); });
  m.def("cache_limit", [] {
    const size_t limit = mx::set_cache_limit(0);  // what it was
    mx::set_cache_limit(limit);
    return limit;
  });
  // Whether MLX would compile a function, on this device and as it is set now. Nothing is computed.
  m.def("compiles", [] {
    const auto compiled =
        mx::compile([](const std::vector<mx::array>& x) { return std::vector{mx::exp(mx::sin(x[0]))}; });
    const std::string name = compiled({mx::array(1.0f)})[0].primitive().name();
    return name.rfind("Compiled", 0) == 0;
  });
}
