"""Keeps our flags out of third-party libraries.

A target is built once for each distinct configuration, read or not: with `--//platforms:enable_mlx`
on, llama.cpp would compile a second time into objects equal to the first. A `reset_flags` between
our code and such a library sets the flags that it does not read back to their defaults, so that all
variants share one build of it:

    reset_flags(
        name = "llama",
        deps = ["@llama_cpp//:llama"],
    )

//platforms:cpu_level is not reset: ggml-cpu does read it.
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

# The build_setting_default of each, in BUILD.bazel.
FLAG_DEFAULTS = {
    "//platforms:enable_litert": False,
    "//platforms:enable_mlx": False,
    "//platforms:ffi_abi": "15",
}

_reset_transition = transition(
    implementation = lambda settings, attr: FLAG_DEFAULTS,
    inputs = [],
    outputs = FLAG_DEFAULTS.keys(),
)

def _reset_flags_impl(ctx):
    runfiles = ctx.runfiles().merge_all([dep[DefaultInfo].default_runfiles for dep in ctx.attr.deps])
    return [
        cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]),
        DefaultInfo(
            files = depset(transitive = [dep[DefaultInfo].files for dep in ctx.attr.deps]),
            runfiles = runfiles,
        ),
    ]

reset_flags = rule(
    implementation = _reset_flags_impl,
    attrs = {
        # cc_shared_library finds what to link by walking CcInfo providers through attributes that
        # it knows: under another name, or without `provides` below, the library would be left out
        # of the link without a word.
        "deps": attr.label_list(
            cfg = _reset_transition,
            doc = "cc_library targets to build with our flags at their defaults.",
            providers = [CcInfo],
        ),
    },
    doc = "A cc_library that stands for `deps`, built with our flags at their defaults.",
    provides = [CcInfo],
)
