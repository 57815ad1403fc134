"""CUDA C++ as a cc_library: compiled by the pinned nvcc, with the target's own C++ compiler for the host's half.

    cuda_library(
        name = "kernels",
        srcs = ["scale.cu"],
        hdrs = ["scale.cuh"],
        deps = [":headers"],
    )

Which GPUs the code is for is the flag //platforms:cuda_architectures.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

# C++ compilation, by the name that toolchains know it by.
_CPP_COMPILE = "c++-compile"

def architecture_flags(architectures):
    """What nvcc is told for a value of //platforms:cuda_architectures.

    Args:
      architectures: compute capabilities without the dot, ascending, e.g. "75,86,120".

    Returns:
      Flags: machine code for each, and for the last PTX besides, which drivers compile for what is newer.
    """
    names = [name.strip() for name in architectures.split(",")]
    for name in names:
        if not name.rstrip("af").isdigit():
            fail("--//platforms:cuda_architectures=%s: %s is no compute capability; write them as in 75,86,120" % (
                architectures,
                repr(name),
            ))
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (name, name) for name in names]
    return flags + ["-gencode=arch=compute_%s,code=compute_%s" % (names[-1], names[-1])]

def _for_host_compiler(flag):
    # nvcc takes lists with commas, and hands words to a shell: what has quotes in it are the macros __DATE__ and
    # __TIME__, which nothing here uses. The language's version is nvcc's own flag.
    if '"' in flag or flag.startswith("-std="):
        return None
    return "-Xcompiler=" + flag.replace(",", "\\,")

def _host_compiler(ctx, cc_toolchain):
    """The target's C++ compiler: its path, the flags and the environment that its toolchain calls it with."""
    features = cc_common.configure_features(
        cc_toolchain = cc_toolchain,
        ctx = ctx,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    variables = cc_common.create_compile_variables(
        cc_toolchain = cc_toolchain,
        feature_configuration = features,
        use_pic = True,
    )
    arguments = {"action_name": _CPP_COMPILE, "feature_configuration": features}
    flags = cc_common.get_memory_inefficient_command_line(variables = variables, **arguments)
    return struct(
        environment = cc_common.get_environment_variables(variables = variables, **arguments),
        features = features,
        flags = [word for word in [_for_host_compiler(flag) for flag in flags] if word],
        path = cc_common.get_tool_for_action(**arguments),
    )

def _compile(ctx, compiler, cc_toolchain, context, src):
    output = ctx.actions.declare_file("_cuda/%s/%s.pic.o" % (ctx.label.name, src.basename))
    arguments = ctx.actions.args()
    arguments.add("-ccbin", compiler.path)
    arguments.add("-std=c++17")
    arguments.add("-O3")
    arguments.add_all(architecture_flags(ctx.attr._architectures[BuildSettingInfo].value))
    arguments.add_all(ctx.attr.copts)

    # Before all others: see the header there.
    arguments.add("-I" + ctx.file._host_headers.dirname)
    arguments.add_all(depset(transitive = [context.includes, context.system_includes]), before_each = "-isystem")
    arguments.add_all(context.quote_includes, before_each = "-I")
    arguments.add_all(context.defines, before_each = "-D")
    arguments.add_all(ctx.attr.local_defines, before_each = "-D")
    arguments.add_all(compiler.flags)
    arguments.add("-Xcompiler", "-fPIC,-fvisibility=hidden,-fvisibility-inlines-hidden,-w")
    arguments.add("-c", src)
    arguments.add("-o", output)
    ctx.actions.run(
        # By its path: the toolkit is an input as a whole, and nvcc looks for the rest of it beside itself.
        executable = ctx.file._toolkit.path + "/bin/nvcc",
        arguments = [arguments],
        env = compiler.environment,
        inputs = depset(
            [src, ctx.file._host_headers, ctx.file._toolkit] + ctx.files.hdrs,
            transitive = [context.headers, cc_toolchain.all_files],
        ),
        outputs = [output],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s for GPUs" % src.short_path,
        use_default_shell_env = True,
    )
    return output

def _cuda_library_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    compiler = _host_compiler(ctx, cc_toolchain)
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    objects = depset([
        _compile(ctx, compiler, cc_toolchain, merged.compilation_context, src)
        for src in ctx.files.srcs
    ])
    linking_context, linking_outputs = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(objects = objects, pic_objects = objects),
        disallow_dynamic_library = True,
        feature_configuration = compiler.features,
        language = "c++",
        linking_contexts = [merged.linking_context],
    )
    library = linking_outputs.library_to_link
    archives = [file for file in [library.static_library, library.pic_static_library] if file]
    return [
        CcInfo(compilation_context = merged.compilation_context, linking_context = linking_context),
        DefaultInfo(files = depset(archives)),
    ]

cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "copts": attr.string_list(doc = "Flags for nvcc."),
        "deps": attr.label_list(doc = "cc_library targets.", providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True, doc = "Files that srcs include."),
        "local_defines": attr.string_list(doc = "Preprocessor defines, for this library only."),
        "srcs": attr.label_list(allow_files = [".cu"], doc = "Files to compile.", mandatory = True),
        "_architectures": attr.label(default = "//platforms:cuda_architectures"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_host_headers": attr.label(allow_single_file = True, default = "//third_party/cuda:host_headers/math.h"),
        "_toolkit": attr.label(allow_single_file = True, cfg = "exec", default = "@cuda_toolkit//:toolkit"),
    },
    doc = "A static library of CUDA C++; see the file's comment.",
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain(),
)
