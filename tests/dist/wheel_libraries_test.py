"""What the libraries in the Python wheel owe whoever loads them."""

from __future__ import annotations

import zipfile

import pytest

from tests.support.elf import GLIBC, Elf
from tests.support.runfile import runfile

(WHEEL,) = runfile("python/wheel/wheel").glob("*.whl")
PAGE = 0x1000


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(WHEEL) as wheel:
        wheel.extractall(folder)
    return folder


def test_these_are_all(unpacked):
    assert len([*unpacked.rglob("*.so*")]) == 2


def test_the_library(unpacked):
    lines = [line.split() for line in runfile("native/ffi/exports.txt").read_text().splitlines() if line[:1] != "#"]
    Elf(unpacked / "elizainference/libelizainference.so").check({name for _, name in lines}, GLIBC, PAGE)


def test_the_extension(unpacked):
    (path,) = (unpacked / "elizainference").glob("_native.*.so")
    extension = Elf(path)
    # Python's own symbols are the interpreter's, which has it loaded.
    python = {name for name in extension.undefined if name.startswith(("Py", "_Py"))}
    extension.check({"PyInit__native"}, GLIBC, PAGE, soname=None, beside=python)
