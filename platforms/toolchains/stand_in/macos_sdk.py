#!/usr/bin/env python3
"""Makes a folder shaped like MacOSX.sdk, to check builds for macOS where no SDK can be had.

    macos_sdk.py ZIG METAL_CPP OUT

ZIG is the unpacked PyPI wheel `ziglang`, which carries macOS's C headers, its list of libSystem's symbols and the
sources of libc++; METAL_CPP is mlx/include/metal_cpp of the wheel `mlx-metal`, from which the headers of Foundation and
Metal are made (frameworks.py). OUT can then be ELIZA_MACOS_SDK: what compiles and links with it calls functions,
classes and methods that there are. It holds lists of symbols in the place of libraries, of which those of Foundation,
Metal and the Objective-C runtime have what ggml-metal needs and no more. Nothing built with it should be shipped.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import frameworks
import libcxx

TARGET = "aarch64-macos.14.0"
FRAMEWORKS = "System/Library/Frameworks"
FOUNDATION = f"/{FRAMEWORKS}/Foundation.framework/Versions/C/Foundation"
METAL = f"/{FRAMEWORKS}/Metal.framework/Versions/A/Metal"
FOUNDATION_REEXPORTS = [f"/{FRAMEWORKS}/CoreFoundation.framework/Versions/A/CoreFoundation", "/usr/lib/libobjc.A.dylib"]
# What clang calls for Objective-C without automatic reference counting.
OBJC = """
    __objc_personality_v0 objc_alloc objc_alloc_init objc_autorelease objc_autoreleasePoolPop objc_autoreleasePoolPush
    objc_begin_catch objc_end_catch objc_enumerationMutation objc_exception_rethrow objc_exception_throw objc_msgSend
    objc_msgSendSuper2 objc_opt_class objc_opt_isKindOfClass objc_opt_new objc_opt_respondsToSelector objc_opt_self
    objc_release objc_retain objc_retainAutorelease objc_sync_enter objc_sync_exit
""".split()


def make_library(
    sdk: pathlib.Path, install_name: str, symbols: list[str], classes: list[str] = (), reexports: list[str] = ()
) -> None:
    """The list of what a library exports, which is what a linker wants of it. Symbols are as C has them."""

    def section(**lists: list[str]) -> str:
        entries = [f"    {name.replace('_', '-')}: {json.dumps(items)}\n" for name, items in lists.items() if items]
        return "  - targets: [ arm64-macos ]\n" + "".join(entries)

    path = sdk / (install_name.removesuffix(".dylib").lstrip("/") + ".tbd")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '{install_name}'\n"
    if reexports:
        text += "reexported-libraries:\n" + section(libraries=reexports)
    exports = section(symbols=[f"_{symbol}" for symbol in symbols], objc_classes=classes)
    path.write_text(f"{text}exports:\n{exports}...\n")


def cxx_symbols(zig: pathlib.Path) -> list[str]:
    """What libc++ and libc++abi define: zig builds them when it links a program, and leaves them in its cache."""
    with tempfile.TemporaryDirectory() as work:
        cache = pathlib.Path(work) / "cache"
        environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}
        source = pathlib.Path(work) / "program.cc"
        source.write_text("#include <string>\nint main(int c, char** v) { return std::string(v[0]).empty() + c; }\n")
        command = [zig / "zig", "c++", "-target", TARGET, "-O2", "-g0", source, "-o", pathlib.Path(work) / "program"]
        subprocess.run([str(word) for word in command], check=True, env=environment)
        command = ["llvm-nm", "--extern-only", "--defined-only", "--format=just-symbols", "--quiet"]
        command += map(str, [*cache.glob("o/*/libc++.a"), *cache.glob("o/*/libc++abi.a")])
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return sorted({name[1:] for name in names if name.startswith("_")})


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    zig, metal_cpp, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    if out.exists():
        sys.exit(f"{out} exists already; name a folder to be made")
    include, libraries = out / "usr/include", out / "usr/lib"
    shutil.copytree(zig / "lib/libc/include/any-darwin-any", include)
    libcxx.make_headers(zig, include, namespace="__1", annotations=True)
    libraries.mkdir(parents=True)
    # The list is of the variants of arm64 with pointer authentication; the plain one has the same symbols.
    symbols = (zig / "lib/libc/darwin/libSystem.tbd").read_text()
    (libraries / "libSystem.tbd").write_text(re.sub(r"arm64e(\.x1)?-", "arm64-", symbols))
    for part in ("dl", "m", "pthread"):
        (libraries / f"lib{part}.tbd").symlink_to("libSystem.tbd")
    make_library(out, "/usr/lib/libc++.1.dylib", cxx_symbols(zig))
    (libraries / "libc++.tbd").symlink_to("libc++.1.tbd")

    exports = frameworks.make_headers(metal_cpp, out / FRAMEWORKS)
    make_library(out, "/usr/lib/libobjc.A.dylib", OBJC, ["NSObject"])
    make_library(out, FOUNDATION_REEXPORTS[0], ["__CFConstantStringClassReference"])
    make_library(out, FOUNDATION, *exports["Foundation"], FOUNDATION_REEXPORTS)
    make_library(out, METAL, *exports["Metal"])
    for library in (out / FRAMEWORKS).glob("*.framework/Versions/*/*.tbd"):
        (library.parents[2] / library.name).symlink_to(library.relative_to(library.parents[2]))
    print(f"made {out}")


if __name__ == "__main__":
    main()
