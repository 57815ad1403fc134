"""The library for Macs: how it is linked, and what is in it. For who has a Mac or an SDK."""

from __future__ import annotations

import os

from tests.support.mach_o import SYSTEM, MachO
from tests.support.runfile import runfile

LIBRARY = MachO(runfile(os.environ["LIBRARY"]))


def test_how_it_is_linked():
    lines = [line.split() for line in runfile("native/ffi/exports.txt").read_text().splitlines() if line[:1] != "#"]
    LIBRARY.check({name for _, name in lines}, SYSTEM, "14.0", beside={"libmlx.dylib"})


def test_the_shaders_are_in_it():
    shaders = LIBRARY.sections["__DATA,__ggml_metallib"]
    assert shaders.count(b"kernel void ") > 100


def test_what_came_after_macos_14_is_optional():
    assert {name for name in LIBRARY.undefined if "ResidencySet" in name} <= LIBRARY.optional


def test_what_lies_beside_it():
    assert MachO(LIBRARY.path.parent / "libmlx.dylib").install_name == "@rpath/libmlx.dylib"
    assert (LIBRARY.path.parent / "mlx.metallib").exists()
