"""ggml-cuda: NVIDIA GPUs for ggml, as part of the overlay in llama_cpp.BUILD.bazel."""

load("//third_party/cuda:cuda_library.bzl", "cuda_library")

_DIR = "ggml/src/ggml-cuda/"

# Pairs of K and V types whose flash attention is compiled: upstream's default.
_FLASH_ATTENTION_TYPES = ["bf16", "f16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"]
_FLASH_ATTENTION = ["bf16-bf16", "f16-f16", "q4_0-q4_0", "q8_0-q8_0"]

_FLASH_ATTENTION_DEFINES = ['GGML_CUDA_FA_QUANTS="%s"' % ",".join(_FLASH_ATTENTION)] + [
    "GGML_CUDA_FA_%s_%s=%d" % (k.upper(), v.upper(), 1 if "%s-%s" % (k, v) in _FLASH_ATTENTION else 0)
    for k in _FLASH_ATTENTION_TYPES
    for v in _FLASH_ATTENTION_TYPES
]

# What //platforms:cuda_kernels=cublas leaves out.
_OPTIONAL = ["%s%s.cu" % (_DIR, name) for name in ["fattn", "fattn-tile", "mmf", "mmq"]]

def ggml_cuda(name, include, deps):
    """Declares ggml's CUDA backend.

    It is compiled without being named in ggml's registry, which would wake every GPU at the first
    use of anything: who wants it registers ggml_backend_cuda_reg().

    Args:
      name: name of the cc_library.
      include: path of ggml/src.
      deps: the library it is a backend of.
    """
    cuda_library(
        name = name,
        srcs = native.glob([_DIR + "*.cu"], exclude = _OPTIONAL) + select({
            Label("//platforms:cuda_kernels_cublas"): [Label("//third_party/llama_cpp:cuda-cublas-only.cu")],
            "//conditions:default": _OPTIONAL + native.glob([
                _DIR + "template-instances/fattn-mma*.cu",
                _DIR + "template-instances/fattn-tile*.cu",
                _DIR + "template-instances/mmf*.cu",
                _DIR + "template-instances/mmq*.cu",
            ]) + ["%stemplate-instances/fattn-vec-instance-%s.cu" % (_DIR, pair) for pair in _FLASH_ATTENTION],
        }),
        hdrs = native.glob([
            _DIR + "*.cuh",
            _DIR + "vendors/cuda.h",
        ]),
        copts = [
            "-I" + include,
            "-use_fast_math",
            "-extended-lambda",
            "-compress-mode=size",
        ],
        local_defines = [
            "NDEBUG",
            "GGML_SCHED_MAX_COPIES=4",
            "_XOPEN_SOURCE=600",
            "GGML_CUDA_USE_GRAPHS",
            # The virtual memory pool would be the only user of the driver's library itself.
            "GGML_CUDA_NO_VMM",
        ] + _FLASH_ATTENTION_DEFINES,
        target_compatible_with = [Label("//platforms:cuda")],
        deps = deps + [Label("//third_party/cuda:cublas")],
    )
