"""What every cc target of ours is compiled with: libraries below //native through library.bzl, and C++ helpers of tests
and benchmarks by themselves:

    load("//native:copts.bzl", "COPTS", "FEATURES")

    cc_binary(
        name = "races",
        srcs = ["races.cc"],
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
