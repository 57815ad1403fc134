"""Stands in for pybind11_bazel's rules, with the same names, attributes and outputs.

Left out: pybind_library_test, which we do not use, and NAME.pyd, which is for Windows.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

# pybind11's casters throw.
_COPTS = ["-fexceptions"]

_DEPS = [Label("@pybind11")]

def pybind_extension(name, copts = [], linkopts = [], deps = [], **kwargs):
    """Builds a Python extension module.

    Defines NAME.so, the module, and the alias NAME, which is what a py_* target names in its `data`.

    Args:
      name: name of the Python module.
      copts: compiler options.
      linkopts: linker options.
      deps: cc_library targets; pybind11 and Python's headers are added.
      **kwargs: other attributes of a cc_binary.
    """
    cc_binary(
        name = name + ".so",
        # pybind11 asks for hidden visibility, so that two extensions do not share its types.
        copts = copts + _COPTS + ["-fvisibility=hidden"],
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

def pybind_library(name, copts = [], deps = [], **kwargs):
    """Builds a C++ library that uses pybind11, for a pybind_extension to depend on.

    Args:
      name: name of the library.
      copts: compiler options.
      deps: cc_library targets; pybind11 and Python's headers are added.
      **kwargs: other attributes of a cc_library.
    """
    cc_library(
        name = name,
        copts = copts + _COPTS,
        deps = deps + _DEPS,
        **kwargs
    )
