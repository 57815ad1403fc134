"""What is in the Linux SDK, and what its library owes whoever loads it."""

from __future__ import annotations

import json
import os
import re
import tarfile

import pytest

from dist import pins
from tests.dist import sdk
from tests.support.elf import GLIBC, Elf
from tests.support.runfile import runfile

CPU = os.environ["CPU"]
# What ELF files call it, and the largest pages of its systems: arm64 has some with 64 KiB.
MACHINE, PAGE = {"arm64": ("AArch64", 0x10000), "x86_64": ("Advanced Micro Devices X86-64", 0x1000)}[CPU]
DOC = "share/doc/libelizainference"
CONTENTS = [
    "include/eliza-inference-ffi.h",
    "lib/cmake/elizainference/elizainference-config-version.cmake",
    "lib/cmake/elizainference/elizainference-config.cmake",
    "lib/libelizainference.so",
    "lib/pkgconfig/elizainference.pc",
    f"{DOC}/LICENSE",
    f"{DOC}/THIRD_PARTY_NOTICES.txt",
    f"{DOC}/sbom.spdx.json",
]


def _version() -> str:
    return re.search(r'VERSION = "(.+)"', runfile("dist/version.bzl").read_text())[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    return sdk.unpack(tmp_path_factory.mktemp("sdk"))


@pytest.fixture(scope="module")
def library(unpacked):
    return Elf(unpacked / "lib" / "libelizainference.so")


def test_there_is_one_version():
    module = re.search(r'version = "(.+)"', runfile("MODULE.bazel").read_text())[1]
    python = re.search(r'__version__ = "(.+)"', runfile("python/elizainference/_version.py").read_text())[1]
    assert (module, python) == (_version(), _version())


def test_contents():
    with tarfile.open(sdk.archive()) as tar:
        files = [member for member in tar.getmembers() if not member.isdir()]
    prefix = f"libelizainference-{_version()}-linux-{CPU}"
    assert [member.name for member in files] == [f"{prefix}/{path}" for path in CONTENTS]
    assert all(member.isfile() for member in files), "links"


def test_the_header_is_the_header(unpacked):
    header = runfile("native/include/eliza-inference-ffi.h").read_text()
    assert (unpacked / "include/eliza-inference-ffi.h").read_text() == header


def test_nothing_is_left_to_fill_in(unpacked):
    for name in ("pkgconfig/elizainference.pc", "cmake/elizainference/elizainference-config-version.cmake"):
        text = (unpacked / "lib" / name).read_text()
        assert _version() in text
        assert "@" not in text


# -- The library ----------------------------------------------------------------------------------


def test_architecture(library):
    assert library.machine == MACHINE


def test_what_a_loader_sees(library):
    lines = [line.split() for line in runfile("native/ffi/exports.txt").read_text().splitlines() if line[:1] != "#"]
    library.check({name for _, name in lines}, GLIBC, PAGE)


def test_it_runs_where_glibc_is_2_28(library):
    assert library.glibc <= (2, 28)


def test_the_c_library_is_the_systems(library):
    # Not zig's compiler_rt: its own are slow, and its stack guard is a constant.
    names = {name.partition("@")[0] for name in library.undefined}
    guard = {"arm64": "__stack_chk_guard", "x86_64": "__stack_chk_fail"}[CPU]
    assert {"expf", "memcmp", "memcpy", "memmove", "memset", "sinf", "strlen", guard} <= names


def test_it_has_no_symbol_table_and_is_small(library):
    assert ".symtab" not in library.sections
    assert library.path.stat().st_size <= 8_000_000


# -- Licenses and the bill of materials -----------------------------------------------------------


def test_notices(unpacked):
    text = (unpacked / DOC / "THIRD_PARTY_NOTICES.txt").read_text()
    for head in ("llama.cpp", "JSON for Modern C++", "libc++, libc++abi, libunwind", "glibc", "Zig"):
        assert re.search(rf"^{re.escape(head)}.* \(.+\)$", text, re.MULTILINE)
    for phrase in ("The ggml authors", "Niels Lohmann", "LLVM Exceptions to the Apache 2.0 License", "Permission is hereby"):
        assert phrase in text


def test_bill_of_materials(unpacked, library):
    bill = json.loads((unpacked / DOC / "sbom.spdx.json").read_text())
    assert bill["name"] == f"libelizainference-linux-{CPU}-{_version()}"
    (file,) = bill["files"]
    assert file["fileName"] == "./lib/libelizainference.so"
    assert {"algorithm": "SHA256", "checksumValue": library.sha256} in file["checksums"]

    pinned = pins.read(runfile("third_party/extensions.bzl"))
    expected = {pin.sha256 for name in ("llama_cpp", "ziglang") for pin in pinned[name]}
    listed = {checksum["checksumValue"] for package in bill["packages"] for checksum in package.get("checksums", [])}
    assert listed == expected
