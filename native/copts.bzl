"""What every cc target of ours under //native (and every C++ test helper) is compiled with:

    load("//native:copts.bzl", "COPTS", "FEATURES")

    cc_library(
        name = "utf8_gate",
        srcs = ["utf8-gate.cc"],
        hdrs = ["utf8-gate.h"],
        copts = COPTS,
        features = FEATURES,
    )
"""

COPTS = [
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Werror",
    # The library exports the C ABI and nothing else; the version script of //:elizainference is the second fence.
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    # Backends promise that results repeat: no fused multiply-add where the source says two roundings.
    "-ffp-contract=off",
]

# Headers of other repositories (llama.cpp, nlohmann/json, pybind11) are system headers to us: -Werror is for our code.
FEATURES = ["external_include_paths"]
