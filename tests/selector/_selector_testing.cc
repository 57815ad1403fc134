// The seam for Python: fake backends are Python classes, and a test calls the selector as the FFI does.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "native/base/error.h"
#include "native/seam/llm-backend.h"
#include "native/seam/registry.h"
#include "native/seam/report.h"
#include "native/seam/selection.h"
#include "native/seam/selector.h"

namespace py = pybind11;

namespace {

// A backend that Python answers for. The name is C++'s: the registry asks for it as a pointer that stays.
class PythonFactory : public LlmBackendFactory {
 public:
  explicit PythonFactory(std::string name) : name_(std::move(name)) {}

  const char* name() const override { return name_.c_str(); }
  bool available() const override { PYBIND11_OVERRIDE_PURE(bool, LlmBackendFactory, available); }
  bool can_serve(const char* bundle_dir) const override {
    PYBIND11_OVERRIDE_PURE(bool, LlmBackendFactory, can_serve, bundle_dir);
  }
  int preference_rank() const override { PYBIND11_OVERRIDE(int, LlmBackendFactory, preference_rank); }
  std::string explain(const char* bundle_dir) const override {
    PYBIND11_OVERRIDE(std::string, LlmBackendFactory, explain, bundle_dir);
  }
  std::string remark(const char* bundle_dir) const override {
    PYBIND11_OVERRIDE(std::string, LlmBackendFactory, remark, bundle_dir);
  }
  // Python answers (bool, why).
  bool can_honour(const eliza_llm_stream_config_t* config, std::string* why) const override {
    const py::gil_scoped_acquire gil;
    const py::function override = py::get_override(static_cast<const LlmBackendFactory*>(this), "can_honour");
    if (!override) return LlmBackendFactory::can_honour(config, why);
    const char* const grammar = config->gbnf_grammar;
    const auto [answer, reason] = override(grammar).cast<std::pair<bool, std::string>>();
    if (why != nullptr) *why = reason;
    return answer;
  }
  LlmBackendSession* open(EliInferenceContext*, const eliza_llm_stream_config_t*, char**) override {
    throw eliza::Error(ELIZA_ERR_FFI_FAULT, "The selector opens nothing.");
  }

 private:
  const std::string name_;
};

// A backend with fixed answers, given without Python's lock: the one for threads and for clocks.
class FixedFactory final : public LlmBackendFactory {
 public:
  FixedFactory(std::string name, bool available, bool can_serve, int rank)
      : name_(std::move(name)), available_(available), can_serve_(can_serve), rank_(rank) {}

  const char* name() const override { return name_.c_str(); }
  bool available() const override { return available_; }
  bool can_serve(const char*) const override { return can_serve_; }
  int preference_rank() const override { return rank_; }
  LlmBackendSession* open(EliInferenceContext*, const eliza_llm_stream_config_t*, char**) override { return nullptr; }

 private:
  const std::string name_;
  const bool available_;
  const bool can_serve_;
  const int rank_;
};

// A session that overrides only what it must.
struct MinimalSession final : LlmBackendSession {
  int prefill(const int32_t*, size_t, char**) override { return ELIZA_OK; }
  int next(int32_t*, size_t, size_t*, char*, size_t, int32_t*, int32_t*, char**) override { return 1; }
  int cancel() override { return ELIZA_OK; }
  int reset() override { return ELIZA_OK; }
  int reset_keep(int32_t) override { return 0; }
};

std::optional<std::string> take(char* message) {
  if (message == nullptr) return std::nullopt;
  std::string result = message;
  std::free(message);
  return result;
}

// A decision with the request it answers, which the report is made of.
struct Answer {
  eliza::SelectionRequest request;
  eliza::Decision decision;

  std::string to_json() const { return eliza::decision_to_json(request, decision); }
};

// `known`: (name, flag, compiled). `grammar`: of the stream's config; without it there is no config.
Answer decide(const eliza::Registry& registry, std::optional<std::string> env, bool has_gguf,
              std::vector<std::tuple<std::string, std::string, bool>> known, std::optional<std::string> grammar,
              bool report, std::string bundle, std::string bundle_error) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  Answer answer;
  answer.request.env_value = std::move(env);
  answer.request.bundle = {std::move(bundle), has_gguf, std::move(bundle_error)};
  answer.request.registered = registry.snapshot();
  for (auto& [name, flag, compiled] : known) answer.request.known.push_back({name, flag, compiled});
  answer.request.ask = report ? eliza::Ask::kReport : eliza::Ask::kOpen;
  if (grammar) {
    config.gbnf_grammar = grammar->c_str();
    answer.request.config = &config;
  }
  answer.decision = eliza::decide(answer.request);
  answer.request.config = nullptr;
  return answer;
}

// llm_backend_select with both of its results.
std::pair<LlmBackendFactory*, std::optional<std::string>> select_backend(std::optional<std::string> bundle_dir) {
  const eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  char* error = nullptr;
  LlmBackendFactory* factory = llm_backend_select(bundle_dir ? bundle_dir->c_str() : nullptr, &config, &error);
  return {factory, take(error)};
}

// Adds all of `factories` from each of `count` threads at once, which meanwhile decide. Threads of C++: Python's own
// take turns, and would hardly meet here. Whether every thread saw only what was added before it looked, each name
// once.
bool add_from_threads(eliza::Registry& registry, const std::vector<FixedFactory*>& factories, int count) {
  std::atomic<int> waiting{count};
  std::atomic<bool> consistent{true};
  const auto work = [&](size_t seed) {
    for (--waiting; waiting > 0;) std::this_thread::yield();
    for (size_t i = 0; i < factories.size(); ++i) {
      FixedFactory* const factory = factories[(i * 7919 + seed) % factories.size()];
      registry.add(factory);
      eliza::SelectionRequest request;
      request.registered = registry.snapshot();
      std::set<std::string> names;
      for (const eliza::RegisteredBackend& backend : request.registered) names.insert(backend.name);
      const bool complete = names.size() == request.registered.size() && names.count(factory->name()) == 1;
      if (!complete || eliza::decide(request).factory == nullptr) consistent = false;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i * 31);
  for (std::thread& thread : threads) thread.join();
  return consistent;
}

using SlotFunction = int (LlmBackendSession::*)(const char*, char**);

std::pair<int, std::optional<std::string>> call_slot_function(SlotFunction function) {
  MinimalSession session;
  char* error = nullptr;
  const int status = (session.*function)("slot", &error);
  return {status, take(error)};
}

}  // namespace

PYBIND11_MODULE(_selector_testing, module) {
  using eliza::BackendRow;
  using eliza::Decision;
  using eliza::Registry;
  using ReleaseGil = py::call_guard<py::gil_scoped_release>;

  py::class_<LlmBackendFactory, PythonFactory>(module, "Factory")
      .def(py::init<std::string>(), py::arg("name"))
      .def_property_readonly("name", &LlmBackendFactory::name);
  py::class_<FixedFactory, LlmBackendFactory>(module, "FixedFactory")
      .def(py::init<std::string, bool, bool, int>(), py::arg("name"), py::arg("available") = true,
           py::arg("can_serve") = true, py::arg("rank") = 0);

  py::class_<Registry>(module, "Registry")
      .def(py::init<>())
      // The registry owns no factory, and a decision points at one: Python must not collect them earlier.
      .def("add", &Registry::add, py::arg("factory"), py::keep_alive<1, 2>(), ReleaseGil())
      .def("names", [](const Registry& registry) {
        std::vector<std::string> names;
        for (const eliza::RegisteredBackend& backend : registry.snapshot()) names.push_back(backend.name);
        return names;
      });

  module.def("add_from_threads", &add_from_threads, py::arg("registry"), py::arg("factories"), py::arg("count"),
             ReleaseGil());

  py::class_<BackendRow>(module, "BackendRow")
      .def_readonly("name", &BackendRow::name)
      .def_readonly("compiled", &BackendRow::compiled)
      .def_readonly("available", &BackendRow::available)
      .def_readonly("can_serve", &BackendRow::can_serve)
      .def_readonly("can_honour", &BackendRow::can_honour)
      .def_readonly("rank", &BackendRow::rank)
      .def_readonly("chosen", &BackendRow::chosen)
      .def_readonly("reason", &BackendRow::reason);

  py::enum_<Decision::Outcome>(module, "Outcome")
      .value("LLAMA_CPP", Decision::Outcome::kLlamaCpp)
      .value("FACTORY", Decision::Outcome::kFactory)
      .value("ERROR", Decision::Outcome::kError);

  py::class_<Answer>(module, "Answer")
      .def_property_readonly("outcome", [](const Answer& answer) { return answer.decision.outcome; })
      .def_property_readonly(
          "factory", [](const Answer& answer) { return answer.decision.factory; }, py::return_value_policy::reference)
      .def_property_readonly("error", [](const Answer& answer) { return answer.decision.error; })
      .def_property_readonly("backends", [](const Answer& answer) { return answer.decision.backends; })
      .def("to_json", &Answer::to_json);

  module.def("decide", &decide, py::arg("registry"), py::kw_only(), py::arg("env") = py::none(),
             py::arg("has_gguf") = true, py::arg("known") = std::vector<std::tuple<std::string, std::string, bool>>(),
             py::arg("grammar") = py::none(), py::arg("report") = false, py::arg("bundle") = "/bundle",
             py::arg("bundle_error") = "", py::keep_alive<0, 1>(), ReleaseGil());

  // The process-wide ones.
  module.def(
      "register",
      [](py::object factory) {
        llm_backend_register(factory.cast<LlmBackendFactory*>());
        factory.release();  // the registry never forgets it
      },
      py::arg("factory"));
  module.def("register_builtins", &llm_backend_register_builtins, ReleaseGil());
  module.def("registered", [] {
    std::vector<std::string> names;
    for (const eliza::RegisteredBackend& backend : Registry::instance().snapshot()) names.push_back(backend.name);
    return names;
  });
  module.def("select_backend", &select_backend, py::arg("bundle_dir"), py::return_value_policy::reference,
             ReleaseGil());
  module.def("select_backend_without_out_error",
             [](const std::string& bundle_dir) { return llm_backend_select(bundle_dir.c_str(), nullptr, nullptr); });
  module.def(
      "backend_report", [](const std::string& bundle_dir) { return eliza::backend_report(bundle_dir); },
      py::arg("bundle_dir"), ReleaseGil());

  // The defaults of the interface.
  module.def("save_slot_default", [] { return call_slot_function(&LlmBackendSession::save_slot); });
  module.def("restore_slot_default", [] { return call_slot_function(&LlmBackendSession::restore_slot); });
  module.def("set_seed_default", [] { return MinimalSession().set_seed(1); });
}
