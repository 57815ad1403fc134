"""ggml-metal: Apple GPUs for ggml, as part of the overlay in llama_cpp.BUILD.bazel."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("@rules_cc//cc:defs.bzl", "cc_library")

_DIR = "ggml/src/ggml-metal/"
_KERNELS = _DIR + "kernels/"

# What kernels include, in the order in which it has to come.
_SHARED = [
    "common.h",
    "dequantize.h",
    "quantize.h",
    "fa_common.metal",
    "fa_vec_common.metal",
]

# As upstream's CMake does: each source with what it includes put in, since it is compiled on the user's machine, where
# there are no headers. The assembler then makes a symbol at its start and one at its end.
_EMBED = """\
kernels=$$(dirname $(location {kernels}common.h))
for kind in {kinds}; do
  parts=
  for shared in {shared}; do
    if [ $$shared = common.h ] || grep -q "#include \\"$$shared\\"" $$kernels/$$kind.metal; then
      parts="$$parts $$kernels/$$shared"
    fi
  done
  out=$(RULEDIR)/ggml-metal-embed/$$kind.metal
  cat $$parts $$kernels/$$kind.metal |
    sed {delete} -e '/#pragma once/d' |
    sed -e '/__embed_ggml-common.h__/r $(location ggml/src/ggml-common.h)' -e '/__embed_ggml-common.h__/d' |
    sed -e '/#include "ggml-metal-impl.h"/r $(location {dir}ggml-metal-impl.h)' -e '/#include "ggml-metal-impl.h"/d' \
    > $$out
  symbol=_ggml_metallib_$$kind
  printf '.section __DATA,__ggml_metallib\\n.private_extern %s_start\\n.private_extern %s_end\\n' $$symbol $$symbol
  printf '.globl %s_start\\n%s_start:\\n.incbin "%s"\\n' $$symbol $$symbol $$out
  printf '.globl %s_end\\n%s_end:\\n' $$symbol $$symbol
done > $(RULEDIR)/ggml-metal-embed/all.S
"""

def ggml_metal(name, copts, conlyopts, cxxopts, defines, include, deps):
    """Declares ggml's Metal backend.

    It is compiled without being named in ggml's registry, which would wake the GPU at the first use
    of anything: who wants it registers ggml_backend_metal_reg().

    Args:
      name: name of the cc_library.
      copts: flags of all of ggml.
      conlyopts: flags of its C.
      cxxopts: flags of its C++.
      defines: defines of all of ggml.
      include: path of ggml/src.
      deps: the library it is a backend of.
    """
    kinds = [
        path.removeprefix(_KERNELS).removesuffix(".metal")
        for path in native.glob([_KERNELS + "*.metal"], exclude = [_KERNELS + shared for shared in _SHARED])
    ]
    embedded = ["ggml-metal-embed/%s.metal" % kind for kind in kinds]
    native.genrule(
        name = name + "_embed",
        srcs = native.glob([_KERNELS + "*"]) + [
            "ggml/src/ggml-common.h",
            _DIR + "ggml-metal-impl.h",
        ],
        outs = embedded + ["ggml-metal-embed/all.S"],
        cmd = _EMBED.format(
            delete = " ".join(["-e '/#include \"%s\"/d'" % shared for shared in _SHARED]),
            dir = _DIR,
            kernels = _KERNELS,
            kinds = " ".join(kinds),
            shared = " ".join(_SHARED),
        ),
    )

    local_defines = defines + [
        "GGML_METAL_EMBED_LIBRARY=1",
        # Objective-C has one space of names for the process: two copies of a class would clash. This one is left out
        # where the shaders are embedded; should it come back, it is ours.
        "GGMLMetalClass=ElizaGGMLMetalClass",
    ]

    # cc_library takes no .m files, and objc_library no other toolchain than Apple's.
    objective_c = [_DIR + "ggml-metal-context.m", _DIR + "ggml-metal-device.m"]
    wrappers = []
    for source in objective_c:
        wrapper = source.removeprefix(_DIR).replace(".m", "-m.c")
        write_file(
            name = wrapper.replace(".", "_"),
            out = wrapper,
            content = ['#include "%s"' % source, ""],
        )
        wrappers.append(wrapper)
    headers = native.glob([_DIR + "*.h"])
    cc_library(
        name = name + "_objective_c",
        srcs = wrappers + headers,
        # Without ARC, as upstream has it.
        copts = copts + conlyopts + ["-I" + include, "-x", "objective-c"],
        linkstatic = True,
        local_defines = local_defines,
        target_compatible_with = ["@platforms//os:macos"],
        textual_hdrs = objective_c,
        deps = deps,
    )
    cc_library(
        name = name,
        srcs = native.glob([_DIR + "*.cpp"]) + headers + ["ggml-metal-embed/all.S"],
        copts = copts + ["-I" + include],
        cxxopts = cxxopts,
        linkopts = [
            "-Wl,-framework,Foundation",
            "-Wl,-framework,Metal",
        ],
        linkstatic = True,
        local_defines = local_defines,
        target_compatible_with = ["@platforms//os:macos"],
        textual_hdrs = embedded,
        deps = deps + [":%s_objective_c" % name],
    )
