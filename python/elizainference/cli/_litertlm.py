"""The header of a .litertlm file: a FlatBuffer that lists its sections, read in bounded code.

The layout is that of LiteRT-LM's litertlm_header_schema.fbs: eight bytes of magic, three numbers of a version, the end
of the header at byte 24, and the FlatBuffer from byte 32.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

from elizainference._errors import BundleError

_BEGIN = 32
_MAX_HEADER = 1 << 20
# Of all lists of a header together: what they point to may overlap, so the header's own size bounds nothing.
_MAX_ITEMS = 4096
_MAX_STRING = 4096  # bytes of one that are read

_SECTIONS = {
    0: "none", 1: "binary data", 2: "deprecated", 3: "TFLite model", 4: "SentencePiece tokenizer",
    5: "LLM metadata", 6: "Hugging Face tokenizer", 7: "TFLite weights", 8: "embedding metadata",
    9: "executor metadata", 10: "speech synthesis metadata", 11: "speech recognition metadata",
}  # fmt: skip
# VData, a union of tables with one field: its struct format, None for a string.
_VALUES = {
    1: "B", 2: "b", 3: "H", 4: "h", 5: "I", 6: "i", 7: "f", 8: "?", 9: None, 10: "Q", 11: "q", 12: "d",
}  # fmt: skip


class _Buffer:
    """Tables of a FlatBuffer. Every position is held against the buffer's end."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._items = 0

    def error(self, what: str) -> BundleError:
        return BundleError(f"{self._name}: {what}; download it again")

    def read(self, format: str, at: int) -> Any:
        try:
            if at < 0:
                raise struct.error
            return struct.unpack_from("<" + format, self._data, at)[0]
        except struct.error:
            raise self.error(f"its header points to byte {at}, outside of itself") from None

    def follow(self, at: int) -> int:
        """The position that the offset at `at` leads to."""
        return at + int(self.read("I", at))

    def field(self, table: int, number: int) -> int | None:
        """Where a table's field is; None where it has its default."""
        vtable = table - int(self.read("i", table))
        size = int(self.read("H", vtable))
        entry = 4 + 2 * number
        offset = int(self.read("H", vtable + entry)) if entry + 2 <= size else 0
        return table + offset if offset else None

    def string(self, at: int) -> str:
        start = self.follow(at)
        length = int(self.read("I", start))
        if start + 4 + length > len(self._data):
            raise self.error(f"its header claims a string of {length} bytes")
        return self._data[start + 4 : start + 4 + min(length, _MAX_STRING)].decode(errors="replace")

    def tables(self, table: int, number: int) -> list[int]:
        """The positions of the tables in the vector that a field is."""
        at = self.field(table, number)
        if at is None:
            return []
        start = self.follow(at)
        count = int(self.read("I", start))
        self._items += count
        if self._items > _MAX_ITEMS:
            raise self.error(f"its header claims {self._items} items or more")
        return [self.follow(start + 4 + 4 * item) for item in range(count)]


def litertlm(path: Path) -> dict[str, Any]:
    """The header of a .litertlm file: "version", "metadata", "sections".

    Raises:
      BundleError: it is none, or it contradicts itself.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(_BEGIN)
        if len(head) < _BEGIN or head[:8] != b"LITERTLM":
            raise BundleError(f"{path}: no .litertlm file; download it again")
        version = ".".join(map(str, struct.unpack_from("<III", head, 8)))
        end = struct.unpack_from("<Q", head, 24)[0]
        if not _BEGIN < end <= min(size, _MAX_HEADER):
            raise BundleError(f"{path}: its header claims to end at byte {end}; download it again")
        buffer = _Buffer(file.read(end - _BEGIN), str(path))
    root = buffer.follow(0)
    system, sections = buffer.field(root, 0), buffer.field(root, 1)
    found = []
    for section in [] if sections is None else buffer.tables(buffer.follow(sections), 0):
        first, last, kind = (buffer.field(section, number) for number in (1, 2, 3))
        begin = 0 if first is None else int(buffer.read("Q", first))
        finish = 0 if last is None else int(buffer.read("Q", last))
        if not begin <= finish <= size:
            raise buffer.error(f"a section from byte {begin} to {finish} is outside of the file")
        type_id = 0 if kind is None else int(buffer.read("B", kind))
        found.append(
            {
                "type": _SECTIONS.get(type_id, f"type {type_id}"),
                "bytes": finish - begin,
                "metadata": _pairs(buffer, section, 0),
            }
        )
    metadata = {} if system is None else _pairs(buffer, buffer.follow(system), 0)
    return {"format": "litertlm", "version": version, "metadata": metadata, "sections": found}


def _pairs(buffer: _Buffer, table: int, number: int) -> dict[str, Any]:
    pairs = {}
    for pair in buffer.tables(table, number):
        key, kind, value = (buffer.field(pair, at) for at in range(3))
        if key is not None and kind is not None and value is not None:
            pairs[buffer.string(key)] = _value(buffer, int(buffer.read("B", kind)), buffer.follow(value))
    return pairs


def _value(buffer: _Buffer, type_id: int, table: int) -> Any:
    at = buffer.field(table, 0)
    if type_id not in _VALUES:
        return f"a value of type {type_id}"
    format = _VALUES[type_id]
    if at is None:
        return "" if format is None else 0
    return buffer.string(at) if format is None else buffer.read(format, at)
