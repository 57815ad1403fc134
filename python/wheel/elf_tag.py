"""The platform tag that compiled files have earned: what they need of a system, read from their ELF headers.

manylinux_2_N (PEP 600) promises that nothing but glibc 2.N or older is needed. What needs more is for the machine that
it was built on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

# glibc's own libraries.
_LIBRARIES = {
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
}

# The oldest that the project builds for (//platforms:glibc228).
_OLDEST = 28


def platform_tag(files: Iterable[Path]) -> str:
    """manylinux_2_N_ARCH where all of `files` keep that promise, else linux_ARCH."""
    needs = [_needs(file) for file in files]
    (machine,) = {machine for machine, _, _ in needs}
    foreign = set().union(*(libraries for _, libraries, _ in needs)) - _LIBRARIES
    versions = set().union(*(versions for _, _, versions in needs))
    other = {version for version in versions if not re.fullmatch(r"GLIBC_2(\.\d+)+", version)}
    if foreign or other:
        return f"linux_{machine}"
    newest = max((int(version.split(".")[1]) for version in versions), default=0)
    return f"manylinux_2_{max(newest, _OLDEST)}_{machine}"


def _needs(path: Path) -> tuple[str, set[str], set[str]]:
    """The machine that a file is for, the libraries it needs, and the versions of their symbols."""
    with open(path, "rb") as file:
        elf = ELFFile(file)
        machine = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}[elf["e_machine"]]
        libraries, versions = set(), set()
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                libraries |= {tag.needed for tag in section.iter_tags("DT_NEEDED")}
            if isinstance(section, GNUVerNeedSection):
                versions |= {version.name for _, wanted in section.iter_versions() for version in wanted}
    return machine, libraries, versions
