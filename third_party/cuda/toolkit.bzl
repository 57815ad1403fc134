"""The CUDA compiler: that of CUDA_HOME, where it is set, else NVIDIA's own wheels from PyPI, pinned.

Its targets are in toolkit.BUILD.bazel. It is fetched when something is first built for GPUs.
"""

load("//third_party:pypi.bzl", "own_name", "pip_download", "unpack")

# nvcc of 13.5 compiles with clang up to 22 and gcc up to 16; its code runs with drivers since 580.
_WHEELS = """\
nvidia-cuda-cccl==13.3.5.0.6 --hash=sha256:d5230098fa2df5021e1a00c0c4eee41797671a91119d31e892463e5ccf3ee326
nvidia-cuda-crt==13.5.37 --hash=sha256:e898b7f73d3035fa89915a3f7bf3b54a73e90249746111aed295822c4729bb29
nvidia-cuda-nvcc==13.5.37 --hash=sha256:f5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7
nvidia-cuda-runtime==13.5.37 --hash=sha256:df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d
nvidia-nvvm==13.5.37 --hash=sha256:c41bfa362e407405163f103c2229f0765f8cc2ed7d148b754dc77f228bf7e070
"""

def _installed(rctx, home):
    if not rctx.path(home + "/bin/nvcc").exists:
        fail("@%s: CUDA_HOME=%s holds no bin/nvcc. Point it at a CUDA toolkit 13, or unset it to have NVIDIA's wheels fetched from PyPI." % (
            own_name(rctx),
            home,
        ))
    rctx.symlink(home, "toolkit")

def _fetched(rctx):
    rctx.file("requirements.txt", _WHEELS)
    wheels = pip_download(rctx, "NVIDIA's CUDA compiler", "requirements.txt", [
        "--only-binary=:all:",
        "--platform=manylinux2014_x86_64",
        "--platform=manylinux2010_x86_64",
    ])
    for wheel in wheels:
        unpack(rctx, wheel, output = "wheels")
    rctx.delete("download")
    rctx.delete("requirements.txt")
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
    },
    doc = "nvcc with what it needs, from CUDA_HOME or from PyPI.",
    environ = ["CUDA_HOME"],
)
