"""Packages from PyPI with compiled parts, for the machine that fetches: pinned by sha256, fetched with the user's pip.

pypi_wheels, in pypi.bzl, is for packages that run on any Python, and leaves compiled parts out.
"""

load(":pypi.bzl", "host_name", "own_name")

# {a host_name(): platform tags of wheels that run there}
_PLATFORMS = {
    "linux_aarch64": ["manylinux2014_aarch64", "manylinux_2_28_aarch64"],
    "linux_x86_64": ["manylinux2014_x86_64", "manylinux_2_28_x86_64"],
    "macos_aarch64": ["macosx_11_0_arm64", "macosx_12_0_arm64"],
}

# The public registry's toolchain (MODULE.bazel), and the private root's. A package's modules for both lie side by side,
# and each Python takes those with its name.
_PYTHON_VERSIONS = ["3.12", "3.14"]

_PY_LIBRARY = """
py_library(
    name = "{name}",
    srcs = glob(["{name}/**/*.py"]),
    # Labels have no spaces.
    data = glob(["{name}/**"], exclude = ["{name}/**/*.py", "{name}/**/* *"]),
    imports = ["{name}"],
    visibility = ["//visibility:public"],
)
"""

_WHEELS = """
filegroup(
    name = "wheels",
    srcs = glob(["wheels/*.whl"]),
    visibility = ["//visibility:public"],
)
"""

def _pypi_compiled_wheels_impl(rctx):
    requirements = rctx.path(rctx.attr.requirements)
    rctx.watch(requirements)
    host = host_name(rctx)
    if host not in _PLATFORMS:
        fail("@%s is pinned for %s, and this machine is %s. Leave out the targets that need it." % (
            own_name(rctx),
            ", ".join(sorted(_PLATFORMS)),
            host,
        ))
    for version in _PYTHON_VERSIONS:
        rctx.report_progress("pip download for Python " + version)
        command = ["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        command += ["--requirement", requirements, "--dest", "wheels", "--only-binary=:all:"]
        command += ["--implementation=cp", "--python-version=" + version]
        command += ["--platform=" + platform for platform in _PLATFORMS[host]]
        result = rctx.execute(
            command,
            environment = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_REQUIRE_VIRTUALENV": "0"},
            timeout = 3600,
        )
        if result.return_code:
            fail("\n".join([
                "@%s: could not fetch the packages of %s." % (own_name(rctx), requirements.basename),
                "Check the network and `python3 -m pip config list`. The command was: " +
                " ".join([str(word) for word in command]),
                "pip said:",
                result.stderr + result.stdout,
            ]))

    names = {}
    for wheel in sorted(rctx.path("wheels").readdir(), key = lambda path: path.basename):
        name = wheel.basename.split("-")[0].lower()
        names[name] = True

        # A wheel is a zip file, but Bazel goes by the file's name.
        rctx.symlink(wheel, "wheel.zip")
        rctx.extract("wheel.zip", output = name)
        rctx.delete("wheel.zip")
    rctx.file("BUILD.bazel", "".join(
        ['load("@rules_python//python:defs.bzl", "py_library")\n', _WHEELS] +
        [_PY_LIBRARY.format(name = name) for name in names],
    ))

pypi_compiled_wheels = repository_rule(
    implementation = _pypi_compiled_wheels_impl,
    attrs = {
        "requirements": attr.label(
            allow_single_file = True,
            doc = "A requirements file: `name==version --hash=sha256:…` lines, a hash for each wheel that a host may need.",
            mandatory = True,
        ),
    },
    doc = """Python packages, compiled parts included: one py_library each, and the wheels themselves as `wheels`.

    A library is called as its wheel is (`pydantic_core`) and has no deps: //third_party/python
    states them.""",
)
