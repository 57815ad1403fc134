"""What macOS's loader reads of a shared library, for tests of what is built.

    library = MachO(path)
    library.check(exports, needed=SYSTEM, minimum="14.0")

The layout is that of <mach-o/loader.h> and <mach-o/nlist.h>, 64 bits, little-endian.
"""

from __future__ import annotations

import re
import struct
from functools import cached_property
from pathlib import Path

from tests.support.elf import build_paths

# What a library may need of macOS, and nothing else.
SYSTEM = re.compile(
    r"/usr/lib/(libSystem\.B|libc\+\+\.1|libobjc\.A)\.dylib"
    r"|/System/Library/Frameworks/(CoreFoundation|Foundation|Metal)\.framework/Versions/[A-Z]/\2"
)
_MAGIC, _ARM64, _DYLIB, _TWO_LEVELS = 0xFEEDFACF, 0x0100000C, 6, 0x80
_SEGMENT, _SYMTAB, _ID, _BUILD_VERSION, _RPATH = 0x19, 0x2, 0xD, 0x32, 0x8000001C
_LOADS = (0xC, 0x80000018, 0x8000001F, 0x80000023)  # plain, weak, re-exported, upward
_ANY_LIBRARY = 0xFE
# Where ggml-metal puts a trace if GGML_METAL_CAPTURE_COMPUTE asks for one.
_OF_ANY_MACHINE = {b"/tmp/perf-metal-%d.gputrace"}


class MachO:
    """A shared library for arm64."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = path.read_bytes()
        magic, cpu, _, kind, self._count, _, self._flags = struct.unpack_from("<7I", self._data)
        assert (magic, cpu, kind) == (_MAGIC, _ARM64, _DYLIB), "no arm64 dylib"

    @cached_property
    def _commands(self) -> list[tuple[int, bytes]]:
        """(kind, command) of each load command."""
        commands, offset = [], 32
        for _ in range(self._count):
            kind, size = struct.unpack_from("<2I", self._data, offset)
            commands.append((kind, self._data[offset : offset + size]))
            offset += size
        return commands

    def _names(self, *kinds: int) -> list[str]:
        """The strings of commands that are a string and some numbers."""
        found = [command for kind, command in self._commands if kind in kinds]
        return [command[struct.unpack_from("<I", command, 8)[0] :].split(b"\0")[0].decode() for command in found]

    @property
    def install_name(self) -> str:
        """What who links with it will look for."""
        (name,) = self._names(_ID)
        return name

    @property
    def needed(self) -> list[str]:
        """The libraries that are loaded with it."""
        return self._names(*_LOADS)

    @property
    def run_paths(self) -> list[str]:
        """Where those are looked for that start with @rpath."""
        return self._names(_RPATH)

    @property
    def minimum(self) -> str:
        """The oldest macOS that loads it."""
        ((platform, minimum),) = [
            struct.unpack_from("<2I", command, 8) for kind, command in self._commands if kind == _BUILD_VERSION
        ]
        assert platform == 1, "not for macOS"
        return f"{minimum >> 16}.{minimum >> 8 & 0xFF}"

    @cached_property
    def sections(self) -> dict[str, bytes]:
        """{"__DATA,__name": what is in it}"""
        sections = {}
        for kind, command in self._commands:
            for offset in range(72, len(command), 80) if kind == _SEGMENT else ():
                name, segment, _, size, start = struct.unpack_from("<16s16sQQI", command, offset)
                title = b",".join(part.rstrip(b"\0") for part in (segment, name)).decode()
                sections[title] = self._data[start : start + size]
        return sections

    @cached_property
    def _symbols(self) -> list[tuple[str, int, int]]:
        """(name, type, description) of each symbol that is not a debugger's."""
        ((start, count, strings, _),) = [
            struct.unpack_from("<4I", command, 8) for kind, command in self._commands if kind == _SYMTAB
        ]
        symbols = []
        for i in range(count):
            name, kind, _, description, _ = struct.unpack_from("<IBBHQ", self._data, start + 16 * i)
            end = self._data.index(b"\0", strings + name)
            symbols.append((self._data[strings + name : end].decode(), kind, description))
        return [symbol for symbol in symbols if not symbol[1] & 0xE0]

    @cached_property
    def exports(self) -> set[str]:
        """The symbols that others can use, as C has them."""
        return {
            name.removeprefix("_") for name, kind, _ in self._symbols if kind & 0x1 and kind & 0xE and not kind & 0x10
        }

    @cached_property
    def undefined(self) -> dict[str, int]:
        """{symbol that it needs: which of `needed` has it, from 1}"""
        return {name: description >> 8 for name, kind, description in self._symbols if kind & 0x1 and not kind & 0xE}

    @cached_property
    def optional(self) -> set[str]:
        """Those of `undefined` that a system may lack."""
        return {name for name, _, description in self._symbols if name in self.undefined and description & 0x40}

    def check(
        self,
        exports: set[str],
        needed: re.Pattern[str],
        minimum: str,
        install_name: str = "@rpath/libelizainference.dylib",
        beside: frozenset[str] | set[str] = frozenset(),
    ) -> None:
        """Fails where a user of the library would.

        Args:
          exports: its symbols, all of them.
          needed: matches the system's libraries that it may need.
          minimum: the oldest macOS that it has to load on.
          install_name: its own name.
          beside: the libraries that lie beside it.
        """
        assert self.exports == exports
        assert self.install_name == install_name
        assert self.minimum == minimum
        assert {name for name in self.needed if not needed.fullmatch(name)} == {f"@rpath/{name}" for name in beside}
        assert ("@loader_path" in self.run_paths) == bool(beside)
        assert [path for path in self.run_paths if not path.startswith("@loader_path")] == []

        # Each symbol is one that a library said to have, when this was linked.
        assert self._flags & _TWO_LEVELS
        assert [name for name, library in self.undefined.items() if library == _ANY_LIBRARY] == []

        # Objective-C has one space of names for a process, which a second ggml in it may have filled.
        assert [name for name in self.sections if re.search("__objc_(cat|class|proto)list", name)] == []

        # It says nothing of the machine that built it.
        assert build_paths(self._data) - {name.encode() for name in self.needed} <= _OF_ANY_MACHINE
