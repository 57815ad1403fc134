// Whether this host can run ggml-cpu's code.
//
// ggml-cpu is compiled for one set of instructions, without dispatch at run time: on a CPU that
// lacks one of them, its first kernel would end the host process with SIGILL. Ask before anything
// computes:
//
//   const std::string missing = missing_cpu_features();
//   if (!missing.empty()) {
//     // "this CPU has no avx2, fma; take a build with --//platforms:cpu_level=baseline"
//   }
#pragma once

#include <string>
#include <string_view>

namespace eliza {

// The features that this build needs and this host (its CPU, or its kernel) does not offer,
// separated by ", "; empty where everything is there.
std::string missing_cpu_features();

// Whether this host offers a feature of cpu_levels.bzl. False for a name it does not know.
bool host_has_cpu_feature(std::string_view name);

}  // namespace eliza
