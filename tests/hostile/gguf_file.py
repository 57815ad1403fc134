"""A good GGUF file taken apart, to be put together again with one thing changed."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.models.gguf_writer import ARRAY, BOOL, F32, I32, STRING, U32, parts, string

_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, U32: 4, I32: 4, F32: 4, BOOL: 1, 10: 8, 11: 8, 12: 8}
_ALIGNMENT = 32

# Types of tensors by name: number in the file, elements and bytes of a block. Source: ggml.h and ggml-common.h.
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ2_XXS": (16, 256, 66),
    "IQ2_XS": (17, 256, 74),
    "IQ3_XXS": (18, 256, 98),
    "IQ1_S": (19, 256, 50),
    "IQ4_NL": (20, 32, 18),
    "IQ3_S": (21, 256, 110),
    "IQ2_S": (22, 256, 82),
    "IQ4_XS": (23, 256, 136),
    "I8": (24, 1, 1),
    "I16": (25, 1, 2),
    "I32": (26, 1, 4),
    "I64": (27, 1, 8),
    "F64": (28, 1, 8),
    "IQ1_M": (29, 256, 56),
    "BF16": (30, 1, 2),
    "TQ1_0": (34, 256, 54),
    "TQ2_0": (35, 256, 66),
    "MXFP4": (39, 32, 17),
    "NVFP4": (40, 64, 36),
    "Q1_0": (41, 128, 18),
    "Q2_0": (42, 64, 18),
}
_NAMES = {number: name for name, (number, _, _) in TYPES.items()}


class Pair(NamedTuple):
    """A key, the number of its value's type, and the value's bytes."""

    key: str
    kind: int
    value: bytes


class Tensor(NamedTuple):
    """A tensor: its extents, the fastest first, as the file has them."""

    name: str
    extents: tuple[int, ...]
    type: str
    data: bytes | memoryview

    def changed(self, extents: tuple[int, ...] | None = None, type: str | None = None) -> Tensor:
        """The same with other extents or another type, and as many of its bytes, over and over, as these take."""
        extents, type = extents or self.extents, type or self.type
        size = size_of(type, extents)
        data = bytes(self.data)
        return Tensor(self.name, extents, type, (data * (size // max(len(data), 1) + 1))[:size])


def size_of(type: str, extents: tuple[int, ...]) -> int:
    """The bytes of a tensor; a row that is no multiple of a block has those of its whole blocks."""
    _, elements, size = TYPES[type]
    return math.prod(extents[1:]) * (extents[0] // elements) * size


@dataclass
class GgufFile:
    """Pairs and tensors in the order of the file."""

    pairs: list[Pair]
    tensors: list[Tensor]

    @classmethod
    def read(cls, path: Path) -> GgufFile:
        """Takes a file apart; it has to be good, with the alignment that is the format's default."""
        return _Reader(path.read_bytes()).file()

    def write(self, path: Path) -> None:
        """Puts it together again."""
        pairs = [string(key) + struct.pack("<I", kind) + value for key, kind, value in self.pairs]
        tensors = [(name, extents, TYPES[type][0], data) for name, extents, type, data in self.tensors]
        with path.open("wb") as file:
            file.writelines(parts(pairs, tensors))


def _padding(size: int) -> int:
    return -size % _ALIGNMENT


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def file(self) -> GgufFile:
        magic, version, num_tensors, num_pairs = self._take("<4sIQQ")
        assert (magic, version) == (b"GGUF", 3)
        pairs = [self._pair() for _ in range(num_pairs)]
        table = [self._tensor() for _ in range(num_tensors)]
        start = self._at + _padding(self._at)
        data = memoryview(self._data)
        tensors = []
        for name, extents, type, offset in table:
            begin = start + offset
            tensors.append(Tensor(name, extents, type, data[begin : begin + size_of(type, extents)]))
        return GgufFile(pairs, tensors)

    def _take(self, format: str) -> tuple:
        values = struct.unpack_from(format, self._data, self._at)
        self._at += struct.calcsize(format)
        return values

    def _string(self) -> str:
        (size,) = self._take("<Q")
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def _pair(self) -> Pair:
        key = self._string()
        (kind,) = self._take("<I")
        begin = self._at
        self._skip(kind)
        return Pair(key, kind, self._data[begin : self._at])

    def _skip(self, kind: int) -> None:
        if kind == STRING:
            self._string()
        elif kind == ARRAY:
            element, count = self._take("<IQ")
            for _ in range(count):
                self._skip(element)
        else:
            self._at += _SCALARS[kind]

    def _tensor(self) -> tuple[str, tuple[int, ...], str, int]:
        name = self._string()
        (dimensions,) = self._take("<I")
        extents = self._take(f"<{dimensions}Q")
        number, offset = self._take("<IQ")
        return name, extents, _NAMES[number], offset
