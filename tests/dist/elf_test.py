"""The checks of packaged libraries find what they are for: each library here has one fault."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.elf import GLIBC, Elf

SOURCE = """
#include <stdlib.h>
__attribute__((visibility("default"))) void *exported(size_t size) { return malloc(size); }
"""
OPTIONS = [
    "-shared",
    "-fPIC",
    "-O2",
    "-fvisibility=hidden",
    "-Wl,-soname,libelizainference.so",
    "-Wl,-z,relro,-z,now",
    "-Wl,-z,max-page-size=16384",
]


def _build(folder, source: str = "", *options: str) -> Elf:
    """A library without a fault but for those that `source` and `options` add."""
    (folder / "library.c").write_text(SOURCE + source)
    command = [os.environ.get("CC", "cc"), *OPTIONS, *options, str(folder / "library.c"), "-o", str(folder / "library.so")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Elf(folder / "library.so")


def _check(library: Elf, page: int = 0x4000) -> None:
    library.check({"exported"}, GLIBC, page)


def test_a_library_without_a_fault(tmp_path):
    _check(_build(tmp_path))


@pytest.mark.parametrize(
    ("source", "options"),
    [
        pytest.param('__attribute__((visibility("default"))) int more;', [], id="an export too many"),
        pytest.param("", ["-Wl,-soname,libother.so"], id="another name"),
        pytest.param("void nobodys(void); void *p = nobodys;", ["-Wl,-z,undefs"], id="a symbol that nothing it loads has"),
        pytest.param("", ["-Wl,--no-as-needed", "-lgcc_s"], id="a library too many"),
        pytest.param("", ["-Wl,-z,max-page-size=4096"], id="pages of 4 KiB"),
        pytest.param("", ["-Wl,-z,norelro"], id="writable tables of the loader"),
        pytest.param("", ["-Wl,-z,lazy"], id="bound when called"),
        pytest.param("", ["-Wl,-z,execstack"], id="an executable stack"),
        pytest.param(
            '__asm__(".text\\n.globl _malloc_at\\n.hidden _malloc_at\\n_malloc_at: .quad malloc\\n");',
            ["-Wl,-z,notext"],
            id="patched code",
        ),
        pytest.param("", ["-Wl,-rpath,/home/builder/lib"], id="a run path of this machine"),
        pytest.param('const char *from(void) { return "/home/builder/library.c"; }'
                     '__attribute__((used)) static const char *(*keep)(void) = from;', [], id="a path of this machine"),
    ],
)  # fmt: skip
def test_a_fault_is_found(tmp_path, source, options):
    library = _build(tmp_path, source, *options)
    with pytest.raises(AssertionError):
        _check(library)


def test_an_export_too_few(tmp_path):
    with pytest.raises(AssertionError):
        _build(tmp_path).check({"exported", "missing"}, GLIBC, 0x4000)


def test_symbols_of_a_library_beside(tmp_path):
    library = _build(tmp_path, "void beside(void); void *p = beside;", "-Wl,-z,undefs")
    library.check({"exported"}, GLIBC, 0x4000, beside={"beside"})
