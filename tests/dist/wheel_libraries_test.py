"""What the libraries in the Python wheel owe whoever loads them."""

from __future__ import annotations

import re
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
    assert "PyInit__native" in extension.exports
    # pybind11's exceptions, which modules share by name; and operators new and delete of the libc++ that is linked in:
    # it calls its own (-Bsymbolic), and an import shows them to nobody (RTLD_LOCAL).
    others = extension.exports - {"PyInit__native"}
    assert [name for name in others if not re.match(r"_ZT[ISV]N8pybind11|_Z(nw|na|dl|da)", name)] == []
    # Python's own symbols are the interpreter's, which has it loaded.
    python = {name for name in extension.undefined if name.startswith(("Py", "_Py"))}
    extension.check(extension.exports, GLIBC, PAGE, soname=None, beside=python)
