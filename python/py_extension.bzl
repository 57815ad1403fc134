"""Python extension modules, the same in a package and in a test.

    load("//python:py_extension.bzl", "py_extension")

    py_extension(
        name = "_selector_testing",
        srcs = ["_selector_testing.cc"],
        testonly = True,
        deps = ["//native/seam:selector"],
    )

    pytest_test(
        name = "selector_test",
        srcs = ["selector_test.py"],
        deps = [":_selector_testing_py"],
    )

and in selector_test.py: `import _selector_testing`.
"""

load("@pybind11_bazel//:build_defs.bzl", "pybind_extension")
load("@rules_python//python:defs.bzl", "py_library")
load("//native:copts.bzl", "COPTS", "FEATURES")

_EXPORTS = Label("//python:module.lds")

def py_extension(name, copts = [], features = [], linkopts = [], visibility = None, testonly = None, **kwargs):
    """Builds an extension module with pybind11, compiled as everything of ours is, which exports its PyInit alone.

    Defines
      NAME.so   the module,
      NAME      the same, for the `data` of a package that imports it as one of its own modules,
      NAME_py   a py_library for `deps`, with which it is imported as the top-level module NAME.

    Args:
      name: the module's name, the one in PYBIND11_MODULE.
      copts: compiler options besides native/copts.bzl's.
      features: toolchain features besides native/copts.bzl's.
      linkopts: linker options.
      visibility: of the targets.
      testonly: of the targets.
      **kwargs: srcs, deps and the other attributes of pybind_extension.
    """
    pybind_extension(
        name = name,
        additional_linker_inputs = [_EXPORTS],
        copts = COPTS + copts,
        features = FEATURES + features,
        linkopts = linkopts + select({
            Label("//platforms:macos"): ["-Wl,-exported_symbol,_PyInit_*"],
            "//conditions:default": ["-Wl,--version-script=$(location %s)" % _EXPORTS],
        }),
        testonly = testonly,
        visibility = visibility,
        **kwargs
    )
    py_library(
        name = name + "_py",
        data = [":" + name],
        imports = ["."],
        testonly = testonly,
        visibility = visibility,
    )
