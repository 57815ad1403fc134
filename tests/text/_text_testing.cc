// native/text for Python: the classes as they are, with buffers that notice a write beyond their caps.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <locale>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "native/base/error.h"
#include "native/text/sampling.h"
#include "native/text/token-stream.h"
#include "native/text/utf8-gate.h"

namespace py = pybind11;

namespace {

// A TokenSource whose step is a Python callable: step(limit, decoded) appends (id, bytes) to the list `decoded` and
// returns (stop, drafted, accepted). What it appended before it raised counts.
class PythonSource : public eliza::TokenSource {
 public:
  explicit PythonSource(py::function step) : step_(std::move(step)) {}

  Step step(size_t limit, std::vector<eliza::DecodedToken>* out) override {
    py::list decoded;
    const auto take = [&decoded, out] {
      for (const auto& [id, text] : decoded.cast<std::vector<std::pair<int32_t, std::string>>>()) {
        out->push_back({id, text});
      }
    };
    try {
      const auto [stop, drafted, accepted] =
          step_(limit, decoded).cast<std::tuple<eliza::StopReason, int32_t, int32_t>>();
      take();
      return {stop, drafted, accepted};
    } catch (const py::error_already_set&) {
      take();
      throw;
    }
  }

 private:
  py::function step_;
};

class Stream {
 public:
  explicit Stream(py::function step) : source_(std::move(step)), stream_(&source_) {}

  void begin(int32_t max_tokens) { stream_.begin(max_tokens); }
  void reset() { stream_.reset(); }
  std::string stop_reason() const { return eliza::stop_reason_name(stream_.stop_reason()); }
  int64_t generated() const { return stream_.generated(); }
  size_t waiting() const { return stream_.waiting(); }

  // (status, tokens, text, drafted, accepted)
  py::tuple next(size_t tokens_cap, size_t text_cap) {
    constexpr size_t kFence = 16;
    std::vector<int32_t> tokens(tokens_cap + kFence, kUntouched);
    std::string text(text_cap + kFence, kUntouched);
    size_t num_tokens = 99;
    int32_t drafted = 99;
    int32_t accepted = 99;
    int status;
    try {
      status = stream_.next(tokens.data(), tokens_cap, &num_tokens, text.data(), text_cap, &drafted, &accepted);
    } catch (...) {
      check(num_tokens == 0 && drafted == 0 && accepted == 0 && text[0] == '\0', "an error left its outputs unset");
      throw;
    }
    check(num_tokens <= tokens_cap, "more tokens than tokens_cap");
    check(text.find('\0') < text_cap, "no NUL within text_cap");
    const auto untouched = [](auto value) { return value == kUntouched; };
    check(std::all_of(tokens.end() - kFence, tokens.end(), untouched), "a write beyond tokens_cap");
    check(std::all_of(text.end() - kFence, text.end(), untouched), "a write beyond text_cap");
    tokens.resize(num_tokens);
    return py::make_tuple(status, tokens, py::bytes(text.c_str()), drafted, accepted);
  }

  // Calls next with one argument wrong, by the argument's name.
  void next_with_bad(const std::string& argument) {
    int32_t token;
    size_t num_tokens;
    char text[8];
    stream_.next(argument == "tokens_out" ? nullptr : &token, argument == "tokens_cap" ? 0 : 1,
                 argument == "num_tokens_out" ? nullptr : &num_tokens, argument == "text_out" ? nullptr : text,
                 argument == "text_cap" ? 0 : sizeof text, nullptr, nullptr);
  }

 private:
  static constexpr char kUntouched = 0x55;

  static void check(bool holds, const char* otherwise) {
    if (!holds) throw std::logic_error(otherwise);
  }

  PythonSource source_;
  eliza::TokenStream stream_;
};

}  // namespace

PYBIND11_MODULE(_text_testing, m) {
  // Raised as Error(status, message).
  m.attr("Error") = py::reinterpret_steal<py::object>(PyErr_NewException("_text_testing.Error", nullptr, nullptr));
  py::register_local_exception_translator([](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const eliza::Error& error) {
      const py::object type = py::module_::import("_text_testing").attr("Error");
      PyErr_SetObject(type.ptr(), py::make_tuple(error.status(), error.what()).ptr());
    }
  });

  py::class_<eliza::Utf8Gate>(m, "Utf8Gate")
      .def(py::init())
      .def("push",
           [](eliza::Utf8Gate& gate, const std::string& bytes) {
             std::string out;
             gate.push(bytes, &out);
             return py::bytes(out);
           })
      .def("finish",
           [](eliza::Utf8Gate& gate) {
             std::string out;
             gate.finish(&out);
             return py::bytes(out);
           })
      .def("reset", &eliza::Utf8Gate::reset)
      .def_property_readonly("held", &eliza::Utf8Gate::held);
  m.def("to_valid_utf8", [](const std::string& bytes) { return py::bytes(eliza::to_valid_utf8(bytes)); });

  using Config = eliza_llm_stream_config_t;
  py::class_<Config>(m, "Config")
      .def(py::init([] { return Config ELIZA_LLM_STREAM_CONFIG_DEFAULT; }))
      .def_readwrite("max_tokens", &Config::max_tokens)
      .def_readwrite("temperature", &Config::temperature)
      .def_readwrite("top_p", &Config::top_p)
      .def_readwrite("top_k", &Config::top_k)
      .def_readwrite("repeat_penalty", &Config::repeat_penalty)
      .def_readwrite("slot_id", &Config::slot_id)
      .def_readwrite("draft_min", &Config::draft_min)
      .def_readwrite("draft_max", &Config::draft_max)
      .def_readwrite("disable_thinking", &Config::disable_thinking)
      .def_readwrite("n_gpu_layers", &Config::n_gpu_layers)
#if ELIZA_INFERENCE_ABI_VERSION >= 15
      .def_readwrite("context_size", &Config::context_size)
#endif
      ;
  // As a host has it that writes numbers for Germans.
  m.def("set_decimal_comma", [](bool comma) {
    struct Comma : std::numpunct<char> {
      char do_decimal_point() const override { return ','; }
      char do_thousands_sep() const override { return '.'; }
      std::string do_grouping() const override { return "\3"; }
    };
    std::locale::global(comma ? std::locale(std::locale::classic(), new Comma) : std::locale::classic());
  });
  m.def("validate", &eliza::validate_stream_config, py::arg("config").none(true));
  py::class_<eliza::SamplingSettings>(m, "SamplingSettings")
      .def_readonly("temperature", &eliza::SamplingSettings::temperature)
      .def_readonly("top_p", &eliza::SamplingSettings::top_p)
      .def_readonly("top_k", &eliza::SamplingSettings::top_k)
      .def_readonly("repeat_penalty", &eliza::SamplingSettings::repeat_penalty)
      .def_property_readonly("greedy", &eliza::SamplingSettings::greedy);
  m.def("sampling_settings", &eliza::sampling_settings);

  py::enum_<eliza::StopReason>(m, "StopReason")
      .value("NONE", eliza::StopReason::kNone)
      .value("END_OF_GENERATION", eliza::StopReason::kEndOfGeneration)
      .value("MAX_TOKENS", eliza::StopReason::kMaxTokens)
      .value("CONTEXT_FULL", eliza::StopReason::kContextFull);
  py::class_<Stream>(m, "TokenStream")
      .def(py::init<py::function>())
      .def("begin", &Stream::begin)
      .def("reset", &Stream::reset)
      .def("next", &Stream::next, py::arg("tokens_cap") = 32, py::arg("text_cap") = 1024)
      .def("next_with_bad", &Stream::next_with_bad)
      .def_property_readonly("stop_reason", &Stream::stop_reason)
      .def_property_readonly("generated", &Stream::generated)
      .def_property_readonly("waiting", &Stream::waiting);
}
