"""The checks of libraries for macOS find what they are for: each library here has one fault."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.mach_o import SYSTEM, MachO

# Not for the whole module: where all is skipped, the target fails.
makes_libraries = pytest.mark.skipif(
    not all(map(shutil.which, ("clang", "ld64.lld"))),
    reason="there is no clang with ld64.lld to make a library for macOS",
)
TARGET = "--target=arm64-apple-macosx14.0"
SOURCE = """
void *malloc(unsigned long size);
__attribute__((visibility("default"))) void *exported(unsigned long size) { return malloc(size); }
"""
NAME = "-Wl,-install_name,@rpath/libelizainference.dylib"
LIBRARY = """\
--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '%s'
exports:
  - targets: [ arm64-macos ]
    symbols: [ %s ]
...
"""
OBJECTIVE_C = """
__attribute__((objc_root_class)) @interface GGMLMetalClass
@end
@implementation GGMLMetalClass
@end
"""


def _build(folder, source: str = "", *options: str) -> MachO:
    """A library without a fault but for those that `source` and `options` add."""
    (folder / "libSystem.tbd").write_text(LIBRARY % ("/usr/lib/libSystem.B.dylib", "_malloc, __objc_empty_cache"))
    (folder / "libxml2.tbd").write_text(LIBRARY % ("/usr/lib/libxml2.2.dylib", "_xmlFree"))
    (folder / "library.m").write_text(SOURCE + source)
    command = [
        *(
            "clang",
            TARGET,
            "-shared",
            "-O2",
            "-w",
            "-nostdlib",
            "-fvisibility=hidden",
            "-fuse-ld=lld",
            f"-L{folder}",
            "-lSystem",
        ),
        *([] if any("install_name" in option for option in options) else [NAME]),
        *options,
        *(str(folder / "library.m"), "-o", str(folder / "library.dylib")),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return MachO(folder / "library.dylib")


def _check(library: MachO, **more) -> None:
    library.check({"exported"}, SYSTEM, "14.0", **more)


def test_a_library_for_linux(tmp_path):
    (tmp_path / "library.so").write_bytes(b"\x7fELF".ljust(64, b"\0"))
    with pytest.raises(AssertionError, match="no arm64 dylib"):
        MachO(tmp_path / "library.so")


@makes_libraries
def test_a_library_without_a_fault(tmp_path):
    _check(_build(tmp_path))


@makes_libraries
@pytest.mark.parametrize(
    ("source", "options"),
    [
        pytest.param('__attribute__((visibility("default"))) int more;', [], id="an export too many"),
        pytest.param("", ["-Wl,-install_name,/usr/local/lib/libelizainference.dylib"], id="another name"),
        pytest.param("", ["--target=arm64-apple-macosx15.0"], id="a newer macOS"),
        pytest.param("void xmlFree(void); void *p = xmlFree;", ["-lxml2"], id="a library too many"),
        pytest.param("void none(void); void *p = none;", ["-Wl,-undefined,dynamic_lookup"], id="a symbol of none"),
        pytest.param("", ["-Wl,-rpath,@loader_path"], id="a run path for nothing"),
        pytest.param("", ["-Wl,-rpath,/usr/local/lib"], id="a run path of this machine"),
        pytest.param(OBJECTIVE_C, [], id="a class"),
        pytest.param('const char *from(void) { return "/home/builder/library.c"; }'
                     '__attribute__((used)) static const char *(*keep)(void) = from;', [], id="a path of this machine"),
    ],
)  # fmt: skip
def test_a_fault_is_found(tmp_path, source, options):
    library = _build(tmp_path, source, *options)
    with pytest.raises(AssertionError):
        _check(library)


@makes_libraries
def test_an_export_too_few(tmp_path):
    with pytest.raises(AssertionError):
        _build(tmp_path).check({"exported", "missing"}, SYSTEM, "14.0")


@makes_libraries
def test_a_library_beside(tmp_path):
    (tmp_path / "libmlx.tbd").write_text(LIBRARY % ("@rpath/libmlx.dylib", "_mlx"))
    library = _build(tmp_path, "void mlx(void); void *p = mlx;", "-lmlx", "-Wl,-rpath,@loader_path")
    _check(library, beside={"libmlx.dylib"})
    with pytest.raises(AssertionError):
        _check(library)
