// native/bundle for Python, as it is.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "native/base/error.h"
#include "native/bundle/bundle.h"

namespace py = pybind11;

PYBIND11_MODULE(_bundle_testing, m) {
  // Raised as Error(status, message); a message that is not UTF-8 would be a UnicodeDecodeError.
  m.attr("Error") = py::reinterpret_steal<py::object>(PyErr_NewException("_bundle_testing.Error", nullptr, nullptr));
  py::register_local_exception_translator([](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const eliza::Error& error) {
      const py::object type = py::module_::import("_bundle_testing").attr("Error");
      PyErr_SetObject(type.ptr(), py::make_tuple(error.status(), error.what()).ptr());
    }
  });

  m.attr("MANIFEST_NAME") = eliza::kManifestName;
  py::enum_<eliza::RuntimeClass>(m, "RuntimeClass")
      .value("LLAMA_CPP", eliza::RuntimeClass::kLlamaCpp)
      .value("LITERT_LM", eliza::RuntimeClass::kLitertLm)
      .value("MLX", eliza::RuntimeClass::kMlx);
  m.def("runtime_class_name", &eliza::runtime_class_name);

  py::class_<eliza::ManifestFile>(m, "ManifestFile")
      .def_readonly("path", &eliza::ManifestFile::path)
      .def_readonly("sha256", &eliza::ManifestFile::sha256)
      .def_readonly("context_size", &eliza::ManifestFile::context_size)
      .def_readonly("runtime_class", &eliza::ManifestFile::runtime_class);
  py::class_<eliza::Manifest>(m, "Manifest")
      .def_readonly("id", &eliza::Manifest::id)
      .def_readonly("tier", &eliza::Manifest::tier)
      .def_readonly("version", &eliza::Manifest::version)
      .def_readonly("text", &eliza::Manifest::text)
      .def_readonly("mtp", &eliza::Manifest::mtp);
  py::class_<eliza::Artifact>(m, "Artifact")
      // A path is bytes.
      .def_property_readonly("path", [](const eliza::Artifact& artifact) { return py::bytes(artifact.path); })
      .def_readonly("context_size", &eliza::Artifact::context_size);
  py::class_<eliza::Bundle>(m, "Bundle")
      .def_static("open", [](const py::bytes& directory) { return eliza::Bundle::open(directory); })
      .def_property_readonly("manifest", &eliza::Bundle::manifest)
      .def("text_artifact", &eliza::Bundle::text_artifact)
      .def("has_text_artifact", &eliza::Bundle::has_text_artifact)
      .def("coreml_packages", [](const eliza::Bundle& bundle) {
        py::list packages;
        for (const std::string& package : bundle.coreml_packages()) packages.append(py::bytes(package));
        return packages;
      });
}
