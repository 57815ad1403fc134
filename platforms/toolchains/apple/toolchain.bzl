"""How clang and ld64.lld are called for macOS 14: a cc_toolchain, declared in @macos_sdk."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "tool_path", "with_feature_set")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain.bzl", "cc_toolchain")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")

# The oldest that MLX's own build runs on.
_TARGET = "arm64-apple-macosx14.0"

_COMPILE = [
    ACTION_NAMES.assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.cpp_module_codegen,
    ACTION_NAMES.cpp_module_compile,
    ACTION_NAMES.linkstamp_compile,
    ACTION_NAMES.preprocess_assemble,
]

_LINK = [
    ACTION_NAMES.cpp_link_dynamic_library,
    ACTION_NAMES.cpp_link_executable,
    ACTION_NAMES.cpp_link_nodeps_dynamic_library,
]

def _flags(actions, flags, **kwargs):
    return flag_set(actions = actions, flag_groups = [flag_group(flags = flags)], **kwargs)

def _when(mode):
    return [with_feature_set(features = [mode])]

def _features(sdk, linker):
    common = ["--target=" + _TARGET, "-isysroot", sdk]
    return [
        feature(name = mode)
        for mode in ("dbg", "fastbuild", "opt")
    ] + [
        feature(name = name, enabled = True)
        for name in ("supports_dynamic_linker", "supports_pic")
    ] + [
        feature(
            name = "default_compile_flags",
            enabled = True,
            flag_sets = [
                _flags(_COMPILE, common + [
                    # No path, date or time of this build in what it makes.
                    "-ffile-compilation-dir=.",
                    "-Wno-builtin-macro-redefined",
                    '-D__DATE__="redacted"',
                    '-D__TIMESTAMP__="redacted"',
                    '-D__TIME__="redacted"',
                    "-fstack-protector-strong",
                ]),
                _flags(_COMPILE, [
                    "-O2",
                    "-DNDEBUG",
                    # What nobody calls is not linked.
                    "-ffunction-sections",
                    "-fdata-sections",
                ], with_features = _when("opt")),
                _flags(_COMPILE, ["-g"], with_features = _when("dbg")),
            ],
        ),
        # Headers of other repositories give no warnings.
        feature(
            name = "external_include_paths",
            flag_sets = [flag_set(
                actions = _COMPILE,
                flag_groups = [flag_group(
                    expand_if_available = "external_include_paths",
                    flags = ["-isystem%{external_include_paths}"],
                    iterate_over = "external_include_paths",
                )],
            )],
        ),
        feature(
            name = "default_link_flags",
            enabled = True,
            flag_sets = [_flags(_LINK, common + [
                "--ld-path=" + linker,
                "-Wl,-dead_strip",
                "-Wl,-headerpad_max_install_names",
                "-lc++",
            ])],
        ),
        # No -Wl,-s or the like: Apple's tools strip after linking, and sign after that.
    ]

def _config_impl(ctx):
    root = "/".join([part for part in [ctx.label.workspace_root, ctx.label.package] if part])
    tools = {
        "ar": "bin/llvm-ar",
        "cpp": "bin/clang",
        "gcc": "bin/clang",
        "ld": "bin/ld64.lld",
        "nm": "bin/llvm-nm",
        "objdump": "bin/llvm-objdump",
        "strip": "bin/llvm-strip",
    } | {
        # Names that Bazel requires.
        name: "/bin/false"
        for name in ("dwp", "gcov", "llvm-cov", "llvm-profdata", "objcopy")
    }
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "macosx",
        abi_version = "clang",
        compiler = "clang",
        cxx_builtin_include_directories = [
            ctx.attr.resource_directory,
            ctx.attr.sdk_directory,
            "%%workspace%%/%s/sdk" % root,
        ],
        features = _features(root + "/sdk", root + "/bin/ld64.lld"),
        host_system_name = "local",
        target_cpu = "darwin_arm64",
        target_libc = "macosx",
        target_system_name = _TARGET,
        tool_paths = [tool_path(name = name, path = path) for name, path in tools.items()],
        toolchain_identifier = "lld-" + _TARGET,
    )

_lld_cc_toolchain_config = rule(
    implementation = _config_impl,
    attrs = {
        "resource_directory": attr.string(doc = "Where clang has its own headers, as it says itself."),
        "sdk_directory": attr.string(doc = "Where the SDK is, whatever links lead there."),
    },
    provides = [CcToolchainConfigInfo],
)

def lld_cc_toolchain(name, resource_directory, sdk_directory):
    """Declares a cc_toolchain in the package that the SDK is in, as sdk/, whose filegroups it takes.

    Args:
      name: name of the cc_toolchain.
      resource_directory: what `clang -print-resource-dir` says.
      sdk_directory: the real path of the SDK.
    """
    _lld_cc_toolchain_config(
        name = name + "_config",
        resource_directory = resource_directory,
        sdk_directory = sdk_directory,
    )
    cc_toolchain(
        name = name,
        all_files = ":all",
        ar_files = ":programs",
        as_files = ":all",
        compiler_files = ":all",
        dwp_files = ":nothing",
        linker_files = ":all",
        objcopy_files = ":nothing",
        strip_files = ":programs",
        supports_param_files = True,
        toolchain_config = ":%s_config" % name,
    )
