"""Writes the header of a .litertlm file, with nothing but the standard library: what reads one is tried with these."""

from __future__ import annotations

import struct

TF_LITE_MODEL = 3  # of AnySectionDataType
HEADER = 32  # bytes before the flatbuffer


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


class Flatbuffer:
    """Grows from its end; places are counted from there."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, data: bytes) -> int:
        """Puts `data` in front; its place."""
        self.data = data.ljust(-(-len(data) // 8) * 8, b"\0") + self.data
        return len(self.data)

    def table(self, fields: list[tuple[str, int] | None]) -> int:
        """A table of (struct format, value); the format "o" is the place of an object."""
        at, offsets = 4, []
        for field in fields:
            if field is None:
                offsets.append(0)
                continue
            size = 4 if field[0] == "o" else struct.calcsize(field[0])
            at = -(-at // size) * size
            offsets.append(at)
            at += size
        at = -(-at // 8) * 8
        vtable = struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), at, *offsets)
        end = self.add(bytes(at))
        body = bytearray(at)
        for field, offset in zip(fields, offsets, strict=True):
            if field is not None:
                form, value = field
                value = end - offset - value if form == "o" else value
                struct.pack_into("<" + ("I" if form == "o" else form), body, offset, value)
        start = self.add(vtable)
        struct.pack_into("<i", body, 0, start - end)
        self.data = self.data[: start - end] + bytes(body) + self.data[start - end + at :]
        return end

    def vector(self, places: list[int]) -> int:
        """A vector of objects."""
        size = 4 + 4 * len(places)
        end = len(self.data) + -(-size // 8) * 8
        offsets = [end - 4 - 4 * i - place for i, place in enumerate(places)]
        return self.add(struct.pack(f"<I{len(places)}I", len(places), *offsets))

    def items(self, items: dict[str, str]) -> int:
        """A vector of KeyValuePair."""
        pairs = []
        for key, value in items.items():
            key_at, text = self.add(_string(key)), self.add(_string(value))
            value_at = self.table([("o", text)])
            pairs.append(self.table([("o", key_at), ("B", 9), ("o", value_at)]))
        return self.vector(pairs)


def file(buffer: Flatbuffer, sections: int) -> bytes:
    """The file whose sections are the vector at `sections`."""
    root = buffer.table([None, ("o", buffer.table([("o", sections)]))])
    body = struct.pack("<II", len(buffer.data) + 8 - root, 0) + buffer.data
    return b"LITERTLM" + struct.pack("<IIIIQ", 1, 7, 0, 0, HEADER + len(body)) + body


def dumps(*sections: tuple[int, dict[str, str]], ends: int = 0) -> bytes:
    """A file with sections of (type, items), each of which claims to end at byte `ends`."""
    buffer = Flatbuffer()
    tables = [
        buffer.table([("o", buffer.items(items)), ("Q", 0), ("Q", ends), ("B", kind)]) for kind, items in sections
    ]
    return file(buffer, buffer.vector(tables))
