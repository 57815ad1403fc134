// The handle table and the exception wall, for tests in Python.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "native/base/error.h"
#include "native/ffi/handle-table.h"

namespace py = pybind11;

namespace {

using eliza::HandleKind;
using eliza::HandleTable;

// Tells Python what the table does with it.
class Probe final : public eliza::HandleObject {
 public:
  Probe(std::function<void()> on_stop, std::function<void()> on_delete)
      : on_stop_(std::move(on_stop)), on_delete_(std::move(on_delete)) {}
  ~Probe() override {
    if (on_delete_) on_delete_();
  }
  void stop() noexcept override {
    if (on_stop_) on_stop_();
  }

 private:
  std::function<void()> on_stop_;
  std::function<void()> on_delete_;
};

// A call in flight, as a context manager.
class Call {
 public:
  Call(HandleTable* table, HandleKind kind, uintptr_t id) : pin_(table->pin(kind, id)) {}
  void end() { pin_.reset(); }

 private:
  std::optional<HandleTable::Pin> pin_;
};

// The status and the message of guard() around `body`.
template <typename Body>
std::pair<int, std::optional<std::string>> guarded(Body body) {
  char* error = nullptr;
  const int status = eliza::guard(&error, body);
  std::pair<int, std::optional<std::string>> result{status, std::nullopt};
  if (error != nullptr) {
    result.second = py::bytes(error);
    std::free(error);
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_ffi_testing, m) {
  py::register_exception_translator([](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const eliza::Error& error) {
      const std::string message = std::to_string(error.status()) + ": " + error.what();
      PyErr_SetString(PyExc_ValueError, message.c_str());
    }
  });

  py::enum_<HandleKind>(m, "Kind").value("CONTEXT", HandleKind::kContext).value("STREAM", HandleKind::kLlmStream);

  const py::call_guard<py::gil_scoped_release> without_gil;
  py::class_<Call>(m, "Call").def("end", &Call::end, without_gil);
  py::class_<HandleTable>(m, "HandleTable")
      .def(py::init<>())
      .def(
          "add",
          [](HandleTable& table, HandleKind kind, std::function<void()> on_stop, std::function<void()> on_delete,
             uintptr_t parent) {
            return table.add(kind, std::make_unique<Probe>(std::move(on_stop), std::move(on_delete)), parent);
          },
          py::arg("kind"), py::arg("on_stop") = nullptr, py::arg("on_delete") = nullptr, py::arg("parent") = 0)
      .def(
          "pin", [](HandleTable& table, HandleKind kind, uintptr_t id) { return Call(&table, kind, id); },
          py::keep_alive<0, 1>())
      .def("close", &HandleTable::close, without_gil);

  m.def("raising", [](const std::string& what) {
    return guarded([&]() -> int {
      if (what == "Error") throw eliza::Error(ELIZA_ERR_BUNDLE_INVALID, "no \xff");
      if (what == "bad_alloc") throw std::bad_alloc();
      if (what == "exception") throw std::runtime_error("a runtime's words");
      if (what == "int") throw 1;
      return 7;
    });
  });
  m.def("raising_after_message", [] {
    char* error = nullptr;
    const int status = eliza::guard(&error, [&]() -> int {
      eliza::set_error(&error, ELIZA_ERR_INVALID_ARG, "first");
      throw eliza::Error(ELIZA_ERR_OOM, "second");
    });
    const std::string message = error;
    std::free(error);
    return std::make_pair(status, message);
  });
  m.def("take_error_status", [] { return eliza::take_error_status(); });
  m.def("raising_without_out_error", [] {
    return eliza::guard(nullptr, []() -> int { throw eliza::Error(ELIZA_ERR_CANCELLED, "nobody listens"); });
  });
}
