// native/text/hf-tokenizer.h for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "native/base/error.h"
#include "native/text/hf-tokenizer.h"

namespace py = pybind11;
using eliza::HfTokenizer;

PYBIND11_MODULE(_hf_tokenizer_testing, m) {
  // Raised as Error(status, message).
  m.attr("Error") =
      py::reinterpret_steal<py::object>(PyErr_NewException("_hf_tokenizer_testing.Error", nullptr, nullptr));
  py::register_local_exception_translator([](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const eliza::Error& error) {
      const py::object type = py::module_::import("_hf_tokenizer_testing").attr("Error");
      PyErr_SetObject(type.ptr(), py::make_tuple(error.status(), error.what()).ptr());
    }
  });

  py::class_<HfTokenizer, std::shared_ptr<HfTokenizer>>(m, "HfTokenizer")
      .def(py::init([](const std::string& directory) {
        return std::const_pointer_cast<HfTokenizer>(HfTokenizer::load(directory, {{"general.architecture", "test"}}));
      }))
      .def(
          "tokenize",
          [](const HfTokenizer& tokenizer, const std::string& text, bool add_special, bool parse_special) {
            return tokenizer.tokenize(text, add_special, parse_special);
          },
          py::arg("text"), py::arg("add_special") = false, py::arg("parse_special") = true)
      .def(
          "detokenize",
          [](const HfTokenizer& tokenizer, const std::vector<int32_t>& ids, bool remove_special, bool unparse_special) {
            return py::bytes(tokenizer.detokenize(ids.data(), ids.size(), remove_special, unparse_special));
          },
          py::arg("ids"), py::arg("remove_special") = false, py::arg("unparse_special") = false)
      .def("metadata", &HfTokenizer::metadata)
      .def("piece",
           [](const HfTokenizer& tokenizer, int32_t id) { return py::bytes(std::string(tokenizer.piece(id))); })
      .def("find", [](const HfTokenizer& tokenizer, const std::string& token) { return tokenizer.find(token); })
      .def_property_readonly("size", &HfTokenizer::size);
}
