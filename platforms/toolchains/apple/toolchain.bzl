"""How clang and ld64.lld are called for macOS 14: a cc_toolchain, declared in @macos_sdk."""

load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "tool_path")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain.bzl", "cc_toolchain")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")
load("//platforms/toolchains:clang.bzl", "COMPILE", "COMPILE_CXX", "LINK", "REPRODUCIBLE", "clang_features", "flags")
load(":target.bzl", "TARGET")

def _features(root):
    common = ["--target=" + TARGET, "-isysroot", root + "/sdk"]
    return clang_features(
        compile = [
            flags(COMPILE, common + REPRODUCIBLE + ["-fstack-protector-strong"]),
            # Nothing is a module here. Where C++20 could have some, Apple's math.h leaves INFINITY and NAN to the compiler's
            # float.h, and LLVM's does not define them then.
            flags(COMPILE_CXX, ["-Xclang", "-fno-cxx-modules"]),
        ],
        link = [flags(LINK, common + [
            # The path alone would be called as Apple's linker of ten years ago.
            "-fuse-ld=lld",
            "--ld-path=%s/bin/ld64.lld" % root,
            "-Wl,-dead_strip",
            "-Wl,-headerpad_max_install_names",
            "-lc++",
            root + "/availability.o",
        ])],
        # Apple's tools strip after linking, and sign after that.
        strip = False,
    )

def _config_impl(ctx):
    root = "/".join([part for part in [ctx.label.workspace_root, ctx.label.package] if part])
    tools = {
        # For macOS, Bazel writes archives as libtool does.
        "ar": "bin/llvm-libtool-darwin",
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
        features = _features(root),
        host_system_name = "local",
        target_cpu = "darwin_arm64",
        target_libc = "macosx",
        target_system_name = TARGET,
        tool_paths = [tool_path(name = name, path = path) for name, path in tools.items()],
        toolchain_identifier = "lld-" + TARGET,
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
        as_files = ":compile",
        compiler_files = ":compile",
        dwp_files = ":nothing",
        linker_files = ":all",
        objcopy_files = ":nothing",
        strip_files = ":programs",
        supports_param_files = True,
        toolchain_config = ":%s_config" % name,
    )
