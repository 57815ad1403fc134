"""How the NDK's clang is called: a cc_toolchain for one architecture, declared in @android_ndk."""

load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "tool_path")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain.bzl", "cc_toolchain")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")
load("//platforms/toolchains:clang.bzl", "COMPILE", "LINK", "REPRODUCIBLE", "clang_features", "flags")

# Android 8.0: the oldest that LiteRT-LM's NPU runtimes support, and that has every function we call.
_API = 26

_TRIPLES = {
    "arm64": "aarch64-linux-android",
    "x86_64": "x86_64-linux-android",
}

def _features(target, sysroot):
    common = ["--target=" + target, "--sysroot=" + sysroot]
    return clang_features(
        compile = [flags(COMPILE, common + REPRODUCIBLE + ["-fstack-protector-strong"])],
        link = [flags(LINK, common + [
            "-fuse-ld=lld",
            "-Wl,-z,relro,-z,now",
            "-Wl,-z,noexecstack",
            # Phones with pages of 16 KiB load nothing else, and neither does the store.
            "-Wl,-z,max-page-size=16384",
            "-Wl,--gc-sections",
            "-Wl,--as-needed",
            # Crash reports name a file by it; it is a hash of the contents.
            "-Wl,--build-id=sha1",
            # The C++ runtime is linked in: an app may hold another one.
            "-nostdlib++",
            "-lc++_static",
            "-lc++abi",
        ])],
    )

def _config_impl(ctx):
    triple = _TRIPLES[ctx.attr.cpu]
    here = [part for part in [ctx.label.workspace_root, ctx.label.package] if part]
    sysroot = "/".join(here + ["llvm/sysroot"])
    tools = {
        "ar": "llvm/bin/llvm-ar",
        "cpp": "llvm/bin/clang",
        "gcc": "llvm/bin/clang",
        "ld": "llvm/bin/ld.lld",
        "nm": "llvm/bin/llvm-nm",
        "objcopy": "llvm/bin/llvm-objcopy",
        "objdump": "llvm/bin/llvm-objdump",
        "strip": "llvm/bin/llvm-strip",
    } | {
        # Names that Bazel requires, for coverage and split debug information.
        name: "/bin/false"
        for name in ("dwp", "gcov", "llvm-cov", "llvm-profdata")
    }
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "android_%d" % _API,
        abi_version = "clang",
        compiler = "clang",
        cxx_builtin_include_directories = [
            ctx.attr.resource_directory,
            "%workspace%/" + sysroot,
        ],
        features = _features("%s%d" % (triple, _API), sysroot),
        host_system_name = "local",
        target_cpu = ctx.attr.cpu,
        target_libc = "android_%d" % _API,
        target_system_name = triple,
        tool_paths = [tool_path(name = name, path = path) for name, path in tools.items()],
        toolchain_identifier = "ndk-" + triple,
    )

_ndk_cc_toolchain_config = rule(
    implementation = _config_impl,
    attrs = {
        "cpu": attr.string(
            doc = "The architecture of the target, as in @platforms//cpu.",
            mandatory = True,
            values = _TRIPLES.keys(),
        ),
        "resource_directory": attr.string(doc = "Where clang has its own headers, as it says itself."),
    },
    provides = [CcToolchainConfigInfo],
)

def ndk_cc_toolchain(name, cpu, resource_directory):
    """Declares a cc_toolchain in the package that the NDK is in, as llvm/, whose filegroups it takes.

    Args:
      name: name of the cc_toolchain.
      cpu: the architecture of the target, as in @platforms//cpu.
      resource_directory: what `clang -print-resource-dir` says.
    """
    _ndk_cc_toolchain_config(
        name = name + "_config",
        cpu = cpu,
        resource_directory = resource_directory,
    )
    cc_toolchain(
        name = name,
        all_files = ":link",
        ar_files = ":compile",
        as_files = ":compile",
        compiler_files = ":compile",
        dwp_files = ":nothing",
        linker_files = ":link",
        objcopy_files = ":compile",
        strip_files = ":compile",
        supports_param_files = True,
        toolchain_config = ":%s_config" % name,
    )
