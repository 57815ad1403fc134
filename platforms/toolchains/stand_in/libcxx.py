"""LLVM's C++ headers, out of the PyPI wheel `ziglang`."""

import pathlib
import shutil

CONFIG_SITE = """\
#pragma once
#define _LIBCPP_ABI_VERSION 1
#define _LIBCPP_ABI_NAMESPACE {namespace}
#define _LIBCPP_HAS_THREADS 1
#define _LIBCPP_HAS_MONOTONIC_CLOCK 1
#define _LIBCPP_HAS_TERMINAL 1
#define _LIBCPP_HAS_MUSL_LIBC 0
#define _LIBCPP_HAS_THREAD_API_PTHREAD 1
#define _LIBCPP_HAS_THREAD_API_EXTERNAL 0
#define _LIBCPP_HAS_THREAD_API_WIN32 0
#define _LIBCPP_HAS_THREAD_API_C11 0
#define _LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS {annotations}
#define _LIBCPP_HAS_FILESYSTEM 1
#define _LIBCPP_HAS_RANDOM_DEVICE 1
#define _LIBCPP_HAS_LOCALIZATION 1
#define _LIBCPP_HAS_UNICODE 1
#define _LIBCPP_HAS_WIDE_CHARACTERS 1
#define _LIBCPP_HAS_TIME_ZONE_DATABASE 0
#define _LIBCPP_INSTRUMENTED_WITH_ASAN 0
#define _LIBCPP_LIBC_LLVM_LIBC 0
#define _LIBCPP_LIBC_NEWLIB 0
#define _LIBCPP_LIBC_PICOLIBC 0
#define _LIBCPP_PSTL_BACKEND_SERIAL
#define _LIBCPP_HARDENING_MODE_DEFAULT 2
#define _LIBCPP_ASSERTION_SEMANTIC_DEFAULT _LIBCPP_ASSERTION_SEMANTIC_IGNORE
"""


def make_headers(zig: pathlib.Path, include: pathlib.Path, namespace: str, annotations: bool = False) -> None:
    """Puts them into c++/v1 of `include`, a new folder, for a library whose symbols are in std::`namespace`.

    With `annotations`, they say since which version a system's own library has what they declare.
    """
    target = include / "c++/v1"
    shutil.copytree(zig / "lib/libcxx/include", target)
    for header in (zig / "lib/libcxxabi/include").glob("*.h"):
        shutil.copy(header, target)
    (target / "__config_site").write_text(CONFIG_SITE.format(namespace=namespace, annotations=int(annotations)))
    # zig passes the same as options, and has taken the include out.
    config = target / "__config"
    config.write_text("#include <__config_site>\n" + config.read_text())
    handler = target / "__assertion_handler"
    if not handler.exists():
        handler.write_text("#pragma once\n#define _LIBCPP_ASSERTION_HANDLER(message) __builtin_trap()\n")
