"""What a loader reads of a shared library, for tests of what is packaged.

    library = Elf(path)
    library.check(exports, needed=GLIBC, page=0x1000)

`check` holds everything that a packaged .so owes its user, whatever its architecture; the parts can be asked for too.
readelf (binutils) does the reading.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from functools import cached_property
from pathlib import Path

# What a library may need of a host that has glibc, and nothing else.
GLIBC = re.compile(r"(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux(-x86-64\.so\.2|-aarch64\.so\.1))")
# The same of Android, for an app's library.
ANDROID = re.compile(r"lib(c|m|dl|log)\.so")
# Where people and build machines keep what they build. Others (/proc, /sys, /etc, ...) are the same everywhere.
_MACHINE = rb"(?:__w|build|builds|home|mnt|nix|opt|private|root|srv|tmp|usr|Users|var|work|workspace)"


def build_paths(data: bytes) -> set[bytes]:
    """The absolute paths of the machine that built a file, and Bazel's folders, that are left in it."""
    absolute = re.findall(rb"(?<![\x21-\x7e])/" + _MACHINE + rb"/[\x21-\x7e]+", data)
    return {*absolute, *re.findall(rb"[\x21-\x7e]*(?:bazel-out|execroot|sandbox/)[\x21-\x7e]*", data)}


class Elf:
    """A shared library."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _readelf(self, *options: str) -> str:
        return subprocess.run(["readelf", "-W", *options, self.path], check=True, capture_output=True, text=True).stdout

    @cached_property
    def machine(self) -> str:
        """The architecture, as readelf calls it."""
        return re.search(r"Machine:\s+(.*)", self._readelf("-h"))[1]

    @cached_property
    def dynamic(self) -> dict[str, list[str]]:
        """{tag: values} of the dynamic section."""
        entries: dict[str, list[str]] = {}
        for tag, value in re.findall(r"^\s*0x[0-9a-f]+ \((\w+)\)\s+(.*)$", self._readelf("-d"), re.MULTILINE):
            entries.setdefault(tag, []).append(re.sub(r".*\[(.*)\]", r"\1", value))
        return entries

    @cached_property
    def needed(self) -> list[str]:
        """The libraries that are loaded with it."""
        return self.dynamic.get("NEEDED", [])

    @cached_property
    def segments(self) -> list[tuple[str, str, int]]:
        """(type, flags, alignment) of each program header."""
        pattern = r"^\s+(\w+)\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([R ][W ][E ]) (0x[0-9a-f]+|0)$"
        found = re.findall(pattern, self._readelf("-l"), re.MULTILINE)
        return [(kind, flags.replace(" ", ""), int(alignment, 16)) for kind, flags, alignment in found]

    @cached_property
    def _symbols(self) -> list[tuple[str, str, str]]:
        """(binding, section, name@version) of each dynamic symbol."""
        pattern = r"^\s+\d+: [0-9a-f]+\s+\S+\s+\w+\s+(\w+)\s+\w+\s+(?:\[.*?\]\s+)?(\w+) (\S+)"
        return re.findall(pattern, self._readelf("--dyn-syms"), re.MULTILINE)

    @cached_property
    def exports(self) -> set[str]:
        """The symbols that others can use."""
        return {name.partition("@")[0] for _, section, name in self._symbols if section != "UND"}

    @cached_property
    def undefined(self) -> set[str]:
        """The symbols that it needs, each with its version: malloc@GLIBC_2.2.5. Weak ones may stay without."""
        strong = {name for binding, section, name in self._symbols if section == "UND" and binding == "GLOBAL"}
        return {re.sub(r" \(\d+\)$", "", name) for name in strong}

    @cached_property
    def versions(self) -> dict[str, set[str]]:
        """{library: the versions of symbols needed from it}."""
        needs: dict[str, set[str]] = {}
        library = ""
        for line in self._readelf("-V").splitlines():
            if found := re.search(r"Version: 1  File: (\S+)", line):
                library = found[1]
            elif found := re.search(r"Name: (\S+)  Flags:", line):
                needs.setdefault(library, set()).add(found[1])
        return needs

    @property
    def glibc(self) -> tuple[int, ...]:
        """The oldest glibc that has all it needs."""
        numbers = {
            version for versions in self.versions.values() for version in versions if version.startswith("GLIBC_")
        }
        return max(tuple(map(int, version.removeprefix("GLIBC_").split("."))) for version in numbers)

    @cached_property
    def sections(self) -> set[str]:
        """The names of its sections."""
        return set(re.findall(r"^\s+\[ *\d+\] (\.\S+)", self._readelf("-S"), re.MULTILINE))

    @property
    def sha256(self) -> str:
        """The hash of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def check(
        self,
        exports: set[str],
        needed: re.Pattern[str],
        page: int,
        soname: str | None = "libelizainference.so",
        beside: frozenset[str] | set[str] = frozenset(),
    ) -> None:
        """Fails where a user of the library would.

        Args:
          exports: its symbols, all of them.
          needed: matches the libraries that it may need.
          page: the largest page size of the systems it is for; its segments lie on such pages.
          soname: its own name; None: it has none, like modules of Python's.
          beside: the symbols of a library of ours that it is loaded with. They have no versions; the system's have.
        """
        assert self.exports == exports
        assert self.dynamic.get("SONAME", []) == ([soname] if soname else [])
        assert [name for name in self.needed if not needed.fullmatch(name)] == []

        # Whatever it uses is in something that it loads.
        assert self.versions.keys() <= set(self.needed)
        known = {version for versions in self.versions.values() for version in versions}
        strange = {name for name in self.undefined if name.partition("@")[2].lstrip("@") not in known}
        assert strange <= set(beside)

        # Nothing but data is writable, the loader's tables not even after loading, and no code is patched.
        loads = [(flags, alignment) for kind, flags, alignment in self.segments if kind == "LOAD"]
        assert loads
        assert [flags for flags, _ in loads if "W" in flags and "E" in flags] == []
        assert [alignment for _, alignment in loads if alignment < page or alignment % page] == []
        kinds = {kind: flags for kind, flags, _ in self.segments}
        assert "GNU_RELRO" in kinds
        assert "E" not in kinds["GNU_STACK"]
        assert "NOW" in " ".join(self.dynamic.get("FLAGS_1", []))
        assert "TEXTREL" not in self.dynamic and "TEXTREL" not in " ".join(self.dynamic.get("FLAGS", []))

        # It says nothing of the machine that built it.
        for tag in ("RPATH", "RUNPATH"):
            for path in ":".join(self.dynamic.get(tag, [])).split(":"):
                assert path == "" or path.startswith("$ORIGIN"), f"{tag} {path}"
        assert build_paths(self.path.read_bytes()) == set()
