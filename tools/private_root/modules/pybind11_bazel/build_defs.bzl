"""Stands in for pybind11_bazel's rules; same names, attributes, flags and outputs.

Left out: pybind_library_test, which we do not use, and NAME.pyd, which is for Windows.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

_COPTS = ["-fexceptions"]

_DEPS = [Label("@pybind11")]

_FEATURES = [
    # pybind11's headers are neither modules nor self-contained.
    "-use_header_modules",
    "-parse_headers",
]

def pybind_extension(name, copts = [], features = [], linkopts = [], deps = [], **kwargs):
    """Builds a Python extension module.

    Defines NAME.so, the module, and the alias NAME, which is what a py_* target names in its `data`.

    Args:
      name: name of the Python module.
      copts: compiler options.
      features: features of the C++ toolchain.
      linkopts: linker options.
      deps: cc_library targets; pybind11 and Python's headers are added.
      **kwargs: other attributes of a cc_binary.
    """
    cc_binary(
        name = name + ".so",
        copts = copts + _COPTS + ["-fvisibility=hidden"],
        features = features + _FEATURES,
        linkopts = linkopts + ["-Wl,-Bsymbolic"],
        linkshared = True,
        deps = deps + _DEPS,
        **kwargs
    )
    native.alias(
        name = name,
        actual = name + ".so",
        testonly = kwargs.get("testonly"),
        visibility = kwargs.get("visibility"),
    )

def pybind_library(name, copts = [], features = [], deps = [], **kwargs):
    """Builds a C++ library that uses pybind11, for a pybind_extension to depend on.

    Args:
      name: name of the library.
      copts: compiler options.
      features: features of the C++ toolchain.
      deps: cc_library targets; pybind11 and Python's headers are added.
      **kwargs: other attributes of a cc_library.
    """
    cc_library(
        name = name,
        copts = copts + _COPTS,
        features = features + _FEATURES,
        deps = deps + _DEPS,
        **kwargs
    )
