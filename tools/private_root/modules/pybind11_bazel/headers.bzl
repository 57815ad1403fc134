"""The headers that an extension module needs: pybind11's, from PyPI, and the local python3's."""

_PYBIND11_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11/include/**/*.h"]),
    includes = ["pybind11/include"],
    visibility = ["//visibility:public"],
    deps = ["@python_headers"],
)
"""

_PYTHON_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "python_headers",
    hdrs = glob(["include/**/*.h"]),
    includes = [
        "include",
        "include/%s",
    ],
    visibility = ["//visibility:public"],
)
"""

def _run(rctx, what, arguments):
    result = rctx.execute(["python3"] + arguments, timeout = 600)
    if result.return_code:
        fail("%s:\n%s%s" % (what, result.stdout, result.stderr))
    return result.stdout.strip()

def _pybind11_impl(rctx):
    rctx.file("requirements.txt", "pybind11==%s --hash=sha256:%s\n" % (rctx.attr.version, rctx.attr.sha256))
    _run(
        rctx,
        "pip could not download pybind11 " + rctx.attr.version,
        ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest=wheel"] +
        ["--require-hashes", "--requirement=requirements.txt"],
    )
    (wheel,) = rctx.path("wheel").readdir()
    rctx.symlink(wheel, "wheel.zip")  # extract() goes by the file's extension
    rctx.extract("wheel.zip")
    rctx.file("BUILD.bazel", _PYBIND11_BUILD)

_pybind11 = repository_rule(
    implementation = _pybind11_impl,
    attrs = {
        "sha256": attr.string(mandatory = True),
        "version": attr.string(mandatory = True),
    },
    doc = "pybind11's headers, out of its wheel.",
)

def _python_headers_impl(rctx):
    include = rctx.path(_run(
        rctx,
        "python3 does not say where its headers are",
        ["-c", "import sysconfig; print(sysconfig.get_path('include'))"],
    ))
    if not include.get_child("Python.h").exists:
        fail("%s has no Python.h: python3-dev is missing from the private root" % include)
    rctx.symlink(include, "include/" + include.basename)

    # Debian's pyconfig.h includes <x86_64-linux-gnu/python3.14/pyconfig.h>, which gcc would find by
    # itself and a hermetic compiler would not.
    multiarch = _run(
        rctx,
        "python3 does not say what its architecture is called",
        ["-c", "import sysconfig; print(sysconfig.get_config_var('MULTIARCH') or '')"],
    )
    folder = "%s/%s" % (multiarch, include.basename)
    if multiarch and include.dirname.get_child(folder).exists:
        rctx.symlink(include.dirname.get_child(folder), "include/" + folder)

    rctx.file("BUILD.bazel", _PYTHON_BUILD % include.basename)

_python_headers = repository_rule(
    implementation = _python_headers_impl,
    configure = True,
    doc = "The headers of the python3 on PATH.",
    local = True,
)

def _headers_impl(_mctx):
    _pybind11(
        name = "pybind11",
        sha256 = "aa8f0aa6e0a94d3b64adfc38f560f33f15e589be2175e103c0a33c6bce55ee89",
        version = "3.0.1",
    )
    _python_headers(name = "python_headers")

headers = module_extension(
    doc = "Declares @pybind11 and @python_headers.",
    implementation = _headers_impl,
)
