"""The CUDA compiler: that of CUDA_HOME, where it is set, else NVIDIA's own wheels from PyPI, pinned.

Its targets are in toolkit.BUILD.bazel. It is fetched when something is first built for GPUs.
"""

load("//third_party:pypi.bzl", "own_name", "pip_download", "unpack")

def _installed(rctx, home):
    if not rctx.path(home + "/bin/nvcc").exists:
        fail("@%s: CUDA_HOME=%s holds no bin/nvcc. Point it at a CUDA toolkit 13, or unset it to have NVIDIA's wheels fetched from PyPI." % (
            own_name(rctx),
            home,
        ))
    rctx.symlink(home, "toolkit")

def _fetched(rctx):
    requirements = rctx.path(rctx.attr.requirements)
    rctx.watch(requirements)
    wheels = pip_download(rctx, "NVIDIA's CUDA compiler", requirements, [
        "--only-binary=:all:",
        "--platform=manylinux2014_x86_64",
        "--platform=manylinux2010_x86_64",
    ])
    for wheel in wheels:
        unpack(rctx, wheel, output = "wheels")
    rctx.delete("download")
    rctx.symlink("wheels/nvidia/cu13", "toolkit")

    # The wheels do not record which of their files are programs.
    result = rctx.execute(["sh", "-c", "chmod -R +x toolkit/bin toolkit/nvvm/bin"])
    if result.return_code:
        fail("@%s: %s" % (own_name(rctx), result.stderr))

def _cuda_toolkit_impl(rctx):
    home = rctx.getenv("CUDA_HOME")
    if home:
        _installed(rctx, home)
    else:
        _fetched(rctx)
    for library in ["lib64", "lib", "targets/x86_64-linux/lib"]:
        path = "toolkit/%s/libcudart_static.a" % library
        if rctx.path(path).exists:
            rctx.symlink(path, "libcudart_static.a")
            break
    if not rctx.path("libcudart_static.a").exists:
        fail("@%s: %s has no libcudart_static.a, the CUDA runtime to link with; install the whole toolkit." % (
            own_name(rctx),
            home or "the wheel",
        ))
    rctx.symlink(rctx.attr.build_file, "BUILD.bazel")

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    attrs = {
        "build_file": attr.label(allow_single_file = True, mandatory = True),
        "requirements": attr.label(
            allow_single_file = True,
            doc = "NVIDIA's wheels: `name==version --hash=sha256:…` lines.",
            mandatory = True,
        ),
    },
    doc = "nvcc with what it needs, from CUDA_HOME or from PyPI.",
    environ = ["CUDA_HOME"],
)
