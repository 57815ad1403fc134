"""How clang and lld are called for Linux with glibc 2.28.

zig's own driver is not used: `zig c++` keeps a cache that no sandbox can share, adds frame pointers and
debug information with paths in it, and knows no -march. Its parts are: `zig clang`, `zig ld.lld` and
`zig ar` are the plain LLVM programs.
"""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "env_entry", "env_set", "feature", "tool_path")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")
load(
    "//platforms/toolchains:clang.bzl",
    "COMPILE",
    "COMPILE_CXX",
    "LINK",
    "LINK_EXECUTABLE",
    "LINK_LIBRARY",
    "REPRODUCIBLE",
    "clang_features",
    "flags",
)

# {an architecture of Bazel's: (LLVM's name, the folder of its Linux headers)}
_ARCHITECTURES = {
    "arm64": ("aarch64", "aarch64"),
    "x86_64": ("x86_64", "x86"),
}

# How zig's libc++ was built: code that includes its headers has to agree. zig passes these itself.
_LIBCXX_DEFINES = [
    "_LIBCPP_ABI_VERSION=1",
    "_LIBCPP_ABI_NAMESPACE=__1",
    "_LIBCPP_HAS_THREADS=1",
    "_LIBCPP_HAS_MONOTONIC_CLOCK",
    "_LIBCPP_HAS_TERMINAL",
    "_LIBCPP_HAS_MUSL_LIBC=0",
    "_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS",
    "_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "_LIBCPP_HAS_FILESYSTEM=1",
    "_LIBCPP_HAS_RANDOM_DEVICE",
    "_LIBCPP_HAS_LOCALIZATION",
    "_LIBCPP_HAS_UNICODE",
    "_LIBCPP_HAS_WIDE_CHARACTERS",
    "_LIBCPP_HAS_NO_STD_MODULES",
    "_LIBCPP_HAS_TIME_ZONE_DATABASE",
    "_LIBCPP_PSTL_BACKEND_SERIAL",
    "_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
]

def _compile(cpu):
    target, _ = _ARCHITECTURES[cpu]
    return [
        flags(COMPILE, [
            "--target=%s-linux-gnu" % target,
            # None of this machine's headers.
            "-nostdinc",
            "-D__GLIBC_MINOR__=28",
        ] + REPRODUCIBLE + ["-fstack-protector"]),
        flags(COMPILE_CXX, ["-D" + define for define in _LIBCXX_DEFINES]),
    ]

def _include_paths(lib, cpu):
    _, architecture = _ARCHITECTURES[cpu]
    c_headers = ["-isystem%s/%s" % (lib, folder) for folder in [
        "include",
        "libc/include/%s-linux-gnu" % architecture,
        "libc/include/generic-glibc",
        "libc/include/%s-linux-any" % architecture,
        "libc/include/any-linux-any",
    ]]
    cxx_headers = ["-isystem%s/%s" % (lib, folder) for folder in [
        "libcxx/include",
        "libcxxabi/include",
    ]]
    return feature(
        name = "system_include_paths",
        enabled = True,
        flag_sets = [
            flags(COMPILE_CXX, cxx_headers),
            flags(COMPILE, c_headers),
        ],
    )

def _link(linker, runtime, cpu):
    target, _ = _ARCHITECTURES[cpu]
    return [
        flags(LINK, [
            "--target=%s-linux-gnu" % target,
            "--ld-path=" + linker,
            # None of this machine's libraries.
            "-nostdlib",
            "-L" + runtime,
            "-Wl,-z,relro,-z,now",
            "-Wl,-z,noexecstack",
            "-Wl,--gc-sections",
            "-Wl,--as-needed",
            # Names a file in crash reports; it is a hash of the contents.
            "-Wl,--build-id=sha1",
        ]),
        flags(LINK_LIBRARY, [runtime + "/unload.o"]),
        flags(LINK_EXECUTABLE, [
            "-pie",
            runtime + "/Scrt1.o",
        ]),
        # lld looks into an archive whatever its place.
        flags(LINK, [
            "-lc++",
            "-lc++abi",
            "-lunwind",
            "-lc",
            "-lc_nonshared",
            "-lm",
            "-lpthread",
            "-ldl",
            # ld-linux, for __tls_get_addr.
            "-lld",
            "-lcompiler_rt",
        ]),
    ]

def _zig_cc_toolchain_config_impl(ctx):
    zig = ctx.file.zig
    cpu = ctx.attr.cpu
    triple = _ARCHITECTURES[cpu][0] + "-linux-gnu"
    lib = zig.dirname + "/lib"
    features = clang_features(
        compile = _compile(cpu),
        link = _link(ctx.file._linker.path, ctx.files.runtime[0].path, cpu),
    ) + [
        _include_paths(lib, cpu),
        feature(
            name = "zig",
            enabled = True,
            env_sets = [env_set(
                actions = COMPILE + LINK + [ACTION_NAMES.cpp_link_static_library],
                env_entries = [env_entry("ZIG", zig.path)],
            )],
        ),
    ]
    tools = {
        "ar": "ar",
        "gcc": "clang",
        "ld": "ld.lld",
    } | {
        # Not among zig's programs, and not called: names that Bazel requires.
        name: "none"
        for name in ("cpp", "dwp", "gcov", "llvm-cov", "llvm-profdata", "nm", "objcopy", "objdump", "strip")
    }
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "glibc_2.28",
        abi_version = "clang",
        compiler = "clang",
        cxx_builtin_include_directories = ["%workspace%/" + lib],
        features = features,
        host_system_name = "local",
        target_cpu = cpu,
        target_libc = "glibc_2.28",
        target_system_name = triple,
        tool_paths = [
            tool_path(name = name, path = program)
            for name, program in tools.items()
        ],
        toolchain_identifier = "zig-" + triple,
    )

zig_cc_toolchain_config = rule(
    implementation = _zig_cc_toolchain_config_impl,
    attrs = {
        "cpu": attr.string(
            doc = "The architecture of the target, as in @platforms//cpu.",
            mandatory = True,
            values = _ARCHITECTURES.keys(),
        ),
        "runtime": attr.label(
            cfg = "exec",
            doc = "A zig_runtime for the same architecture.",
            mandatory = True,
        ),
        "zig": attr.label(
            allow_single_file = True,
            cfg = "exec",
            default = "@ziglang//:ziglang/zig",
        ),
        "_linker": attr.label(
            allow_single_file = True,
            default = ":ld.lld",
        ),
    },
    doc = "The configuration of a cc_toolchain for one architecture.",
    provides = [CcToolchainConfigInfo],
)
