// The CPU check, for cpu_features_test.py.
#include <pybind11/pybind11.h>

#include "third_party/llama_cpp/cpu-features.h"

PYBIND11_MODULE(_cpu_features_testing, m) {
  m.def("host_has_cpu_feature", &eliza::host_has_cpu_feature);
  m.def("missing_cpu_features", &eliza::missing_cpu_features);
}
