"""The library exports the header's functions and nothing else, and does next to nothing when it is loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import abi
from tests.support.runfile import runfile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")

ABIS = [12, 15]

# What may be loaded along with the library: the C and C++ runtimes of the host.
RUNTIMES = re.compile(r"(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s|ld-linux(-x86-64|-aarch64))\.so\.\d+")


def _library(version: int) -> Path:
    return runfile(os.environ[f"LIBRARY_{version}"])


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _in_header(version: int) -> set[str]:
    """The functions that the header declares for an ABI version."""
    text = runfile("native/include/eliza-inference-ffi.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    newer = re.compile(r"#if ELIZA_INFERENCE_ABI_VERSION >= (\d+)\n(.*?)#(?:else|endif)", re.DOTALL)
    text = newer.sub(lambda match: match[2] if int(match[1]) <= version else "", text)
    return set(re.findall(r"ELIZA_INFERENCE_API [^;]*?\b(eliza_inference_\w+)\(", text))


def _in_list(version: int) -> set[str]:
    """The symbols of exports.txt for an ABI version."""
    lines = [line.split() for line in runfile("native/ffi/exports.txt").read_text().splitlines() if line[:1] != "#"]
    return {name for since, name in lines if since == "own" or int(since) <= version}


@pytest.mark.parametrize("version", ABIS)
def test_header_list_and_library_have_the_same_symbols(version):
    exported = {line.split()[-1] for line in _run("nm", "-D", "--defined-only", _library(version)).splitlines()}
    assert exported == _in_list(version)
    assert exported == _in_header(version)
    newer = abi.NEWER_THAN_12 if version == 12 else set()
    assert exported == {abi.PREFIX + name for name in abi.SIGNATURES.keys() - newer}


@pytest.mark.parametrize("version", ABIS)
def test_version(version):
    assert abi.Library(_library(version)).abi_version() == str(version).encode()


def _dynamic(version: int) -> dict[str, list[str]]:
    """{tag: values} of the dynamic section."""
    entries: dict[str, list[str]] = {}
    for line in _run("readelf", "-W", "-d", _library(version)).splitlines():
        if found := re.match(r"\s*0x[0-9a-f]+ \((\w+)\)\s+(.*)", line):
            entries.setdefault(found[1], []).append(found[2])
    return entries


@pytest.mark.parametrize("version", ABIS)
def test_what_the_loader_reads(version):
    dynamic = _dynamic(version)
    assert dynamic["SONAME"] == ["Library soname: [libelizainference.so]"]
    needed = [re.search(r"\[(.*)\]", value)[1] for value in dynamic["NEEDED"]]
    assert not [name for name in needed if not RUNTIMES.fullmatch(name)]
    assert "TEXTREL" not in dynamic
    assert "NOW" in " ".join(dynamic.get("FLAGS_1", []))
    segments = _run("readelf", "-W", "-l", _library(version))
    assert "GNU_RELRO" in segments
    assert not re.search(r"GNU_STACK.*RWE", segments), "an executable stack"


def _constructors(library: Path) -> set[str]:
    """The source files with code that runs at load; gcc makes one function of all that a file has."""
    symbols = _run("nm", library)
    names = set(re.findall(r" _GLOBAL__(?:sub_)?I_(?:\d+_)?(\S+)", symbols))
    return {name.removesuffix(".cold") for name in names}  # the unlikely part of a function, apart from it


@pytest.mark.parametrize("version", ABIS)
def test_global_constructors_are_the_known_ones(version):
    lines = runfile("tests/exports/global_constructors.txt").read_text().splitlines()
    # The symbol has the file's name with what no identifier may hold as underscores.
    known = {re.sub(r"[^\w.]", "_", line.split()[0]) for line in lines if line[:1] != "#"}
    constructors = _constructors(_library(version))
    assert constructors == known

    # And there are no others under other names: but for the C runtime's own, the table of them is that long.
    size = int(
        re.search(r"\.init_array\s+INIT_ARRAY\s+\S+ \S+ ([0-9a-f]+)", _run("readelf", "-W", "-S", _library(version)))[
            1
        ],
        16,
    )
    assert size // 8 == len(known) + 1
