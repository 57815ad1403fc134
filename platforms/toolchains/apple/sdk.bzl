"""A macOS SDK on Linux, with clang and LLVM's linker: for a look at whether a build fits together.

What ships is built on a Mac, by apple_support's toolchain. This one needs ELIZA_MACOS_SDK, the path of a
MacOSX.sdk folder (whose licence says where it may be used), and clang, ld64.lld and llvm-libtool-darwin on PATH.
"""

load(":target.bzl", "TARGET")

_TOOLS = ["clang", "ld64.lld", "llvm-libtool-darwin", "llvm-nm", "llvm-objdump", "llvm-strip"]

def _macos_sdk_impl(rctx):
    sdk = rctx.getenv("ELIZA_MACOS_SDK")
    if not sdk:
        fail("@macos_sdk: --config=macos_cross needs ELIZA_MACOS_SDK, the path of a MacOSX.sdk folder. On a Mac, build with --config=macos_metal, which needs none.")
    if not rctx.path(sdk + "/usr/include").exists:
        fail("@macos_sdk: ELIZA_MACOS_SDK=%s holds no usr/include, so it is no MacOSX.sdk folder." % sdk)
    rctx.symlink(sdk, "sdk")
    for tool in _TOOLS:
        program = rctx.which(tool)
        if not program:
            fail("@macos_sdk: there is no %s on PATH; install LLVM 19 or newer (on Debian: clang, lld, llvm)." % tool)
        rctx.symlink(program, "bin/" + tool)
    resources = rctx.execute(["bin/clang", "-print-resource-dir"])
    if resources.return_code:
        fail("@macos_sdk: clang does not run: %s" % resources.stderr)
    compile = ["bin/clang", "--target=" + TARGET, "-O2", "-c", rctx.path(rctx.attr.availability), "-o", "availability.o"]
    result = rctx.execute(compile)
    if result.return_code:
        fail("@macos_sdk: clang does not compile for macOS: %s" % result.stderr)
    rctx.template("BUILD.bazel", rctx.attr.build_file)
    rctx.file("paths.bzl", '"""Where things are on this machine."""\n\nRESOURCE_DIRECTORY = %s\n\nSDK_DIRECTORY = %s\n' % (
        repr(resources.stdout.strip()),
        repr(str(rctx.path(sdk).realpath)),
    ))

macos_sdk = repository_rule(
    implementation = _macos_sdk_impl,
    attrs = {
        "availability": attr.label(
            allow_single_file = True,
            doc = "The C source of what clang's runtime library lacks on Linux.",
            mandatory = True,
        ),
        "build_file": attr.label(
            allow_single_file = True,
            doc = "The BUILD file of the repository.",
            mandatory = True,
        ),
    },
    doc = "The SDK of ELIZA_MACOS_SDK and the LLVM tools on PATH.",
    environ = [
        "ELIZA_MACOS_SDK",
        "PATH",
    ],
)

def _apple_impl(mctx):
    macos_sdk(
        name = "macos_sdk",
        availability = "//platforms/toolchains/apple:availability.c",
        build_file = "//platforms/toolchains/apple:sdk.BUILD.bazel",
    )
    return mctx.extension_metadata(reproducible = True)

apple = module_extension(
    doc = "Declares @macos_sdk.",
    implementation = _apple_impl,
)
