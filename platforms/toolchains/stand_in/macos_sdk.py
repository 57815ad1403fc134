#!/usr/bin/env python3
"""Makes a folder shaped like MacOSX.sdk, to check builds for macOS where no SDK can be had.

    macos_sdk.py ZIG OUT

ZIG is the unpacked PyPI wheel `ziglang`, which carries macOS's C headers, its list of libSystem's symbols and the
sources of libc++. OUT can then be ELIZA_MACOS_SDK. It has none of Apple's frameworks: what uses Foundation or Metal
does not compile. Nothing built with it should be shipped.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import libcxx

TARGET = "aarch64-macos.14.0"


def make_cxx_runtime(zig: pathlib.Path, libraries: pathlib.Path) -> None:
    """libc++ as an archive: zig builds it when it links a program, and leaves it in its cache."""
    with tempfile.TemporaryDirectory() as work:
        cache = pathlib.Path(work) / "cache"
        environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}
        source = pathlib.Path(work) / "program.cc"
        source.write_text("#include <string>\nint main(int c, char** v) { return std::string(v[0]).empty() + c; }\n")
        command = [zig / "zig", "c++", "-target", TARGET, "-O2", "-g0", source, "-o", pathlib.Path(work) / "program"]
        subprocess.run([str(word) for word in command], check=True, env=environment)
        [cxx] = cache.glob("o/*/libc++.a")
        [cxxabi] = cache.glob("o/*/libc++abi.a")
        # One archive, as the linker is asked for one.
        script = f"create {libraries}/libc++.a\naddlib {cxx}\naddlib {cxxabi}\nsave\nend\n"
        subprocess.run(["llvm-ar", "-M"], input=script, text=True, check=True)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    zig, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    if out.exists():
        sys.exit(f"{out} exists already; name a folder to be made")
    include, libraries = out / "usr/include", out / "usr/lib"
    shutil.copytree(zig / "lib/libc/include/any-darwin-any", include)
    libcxx.make_headers(zig, include, namespace="__1")
    libraries.mkdir(parents=True)
    # The list is of the variant of arm64 with pointer authentication; the plain one has the same symbols.
    symbols = (zig / "lib/libc/darwin/libSystem.tbd").read_text()
    (libraries / "libSystem.tbd").write_text(symbols.replace("arm64e-", "arm64-"))
    make_cxx_runtime(zig, libraries)
    print(f"made {out}")


if __name__ == "__main__":
    main()
