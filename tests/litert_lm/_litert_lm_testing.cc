// For the tests of what decides whether a model can run: the ladder on hosts that are not this one, and headers; and of
// what is said where it does not.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "native/backends/litert_lm/accelerator.h"
#include "native/backends/litert_lm/engine.h"
#include "native/backends/litert_lm/model-header.h"
#include "native/base/error.h"

namespace py = pybind11;
using namespace eliza::litert_lm;

PYBIND11_MODULE(_litert_lm_testing, module) {
  py::register_exception<eliza::Error>(module, "Error");

  py::class_<Rung>(module, "Rung")
      .def_property_readonly("accelerator", [](const Rung& rung) { return accelerator_name(rung.accelerator); })
      .def_property_readonly("rank", [](const Rung& rung) { return accelerator_rank(rung.accelerator); })
      .def_readonly("present", &Rung::present)
      .def_readonly("device", &Rung::device)
      .def_readonly("dispatch_dir", &Rung::dispatch_dir)
      .def_readonly("why", &Rung::why);

  py::class_<ModelHeader>(module, "ModelHeader")
      .def(py::init([](std::vector<std::string> backends, std::string soc) {
             return ModelHeader{std::move(backends), std::move(soc)};
           }),
           py::arg("backends"), py::arg("soc") = "")
      .def_readonly("backends", &ModelHeader::backends)
      .def_readonly("soc", &ModelHeader::soc);

  module.def("read_model_header", &read_model_header);

  // `files`: those that open.
  module.def(
      "ladder",
      [](const std::string& setting, bool android, const std::string& manufacturer, const std::string& model,
         const std::vector<std::string>& files, const std::vector<std::string>& directories) {
        Host host;
        host.android = android;
        host.soc_manufacturer = manufacturer;
        host.soc_model = model;
        host.open = [files](const std::string& library) {
          for (const std::string& file : files) {
            const bool by_name = library.find('/') == std::string::npos;
            if (file == library || (by_name && file == "/system/lib64/" + library)) return file;
          }
          return std::string();
        };
        return ladder(setting, host, directories);
      },
      py::arg("setting"), py::arg("android") = false, py::arg("manufacturer") = "", py::arg("model") = "",
      py::arg("files") = std::vector<std::string>(), py::arg("directories") = std::vector<std::string>());

  module.def("ladder_of_this_host", [] { return host_ladder(nullptr); });
  module.def("no_accelerator", &no_accelerator);

  module.def("passed_over", &passed_over);

  // (status, message)
  module.def("load_failure", [](const Rung& rung, const std::string& reason) {
    EngineSettings settings;
    settings.model_path = "/models/a.litertlm";
    settings.rung = rung;
    const eliza::Error error = load_failure(settings, reason);
    return py::make_tuple(error.status(), error.what());
  });

  // (the rung or None, why there is none)
  module.def("place", [](const ModelHeader& model, const std::vector<Rung>& rungs) {
    const Placement placement = place(model, rungs);
    return py::make_tuple(placement.rung ? py::cast(*placement.rung) : py::none(), placement.why);
  });
}
