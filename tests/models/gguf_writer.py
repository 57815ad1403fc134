"""A small writer of GGUF files, version 3: what the tiny models of the tests need, and no package to install.

The format is described in ggml's docs/gguf.md: a header, key-value pairs, a table of tensors, and their data, all
little-endian. Files that are wrong on purpose start from one that this module wrote.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_MAGIC = b"GGUF"
_VERSION = 3
_ALIGNMENT = 32  # of tensor data; the format's default

# Types of values: number in the file, and struct's letter for it. STRING and ARRAY have no fixed size.
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
_LETTERS = {U32: "I", I32: "i", F32: "f", BOOL: "?"}

# Types of tensors.
_TENSOR_F32, _TENSOR_F16 = 0, 1


def string(text: str) -> bytes:
    """A string as the format has it."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value) -> bytes:
    return string(value) if kind == STRING else struct.pack("<" + _LETTERS[kind], value)


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNMENT)


def parts(
    pairs: Sequence[bytes], tensors: Sequence[tuple[str, tuple[int, ...], int, bytes | memoryview]]
) -> Iterator[bytes | memoryview]:
    """A file, piece by piece.

    Args:
      pairs: each a key, the type of its value, and its value.
      tensors: each a name, its extents, the fastest first, its type, and its data.
    """
    head = [_MAGIC, struct.pack("<IQQ", _VERSION, len(tensors), len(pairs)), *pairs]
    offset = 0
    for name, extents, kind, data in tensors:
        sizes = struct.pack(f"<I{len(extents)}Q", len(extents), *extents)
        head.append(string(name) + sizes + struct.pack("<IQ", kind, offset))
        offset += len(data) + len(_padding(len(data)))
    yield from head
    yield _padding(sum(map(len, head)))
    for _, _, _, data in tensors:
        yield data
        yield _padding(len(data))


class GgufWriter:
    """Collects keys and tensors in memory; `write` puts them into a file.

    Args:
      architecture: general.architecture; a key that begins with "." is prefixed with it.
      half: store matrices as F16 rather than F32. Vectors (norms, scales) stay F32, as in real models.
    """

    def __init__(self, architecture: str, half: bool = False) -> None:
        self._architecture = architecture
        self._half = half
        self._pairs: list[bytes] = []
        self._tensors: list[tuple[str, tuple[int, ...], int, bytes]] = []
        self.add("general.architecture", STRING, architecture)

    def add(self, key: str, kind: int, value) -> None:
        """Adds a key of a scalar or string type."""
        self._pair(key, struct.pack("<I", kind) + _value(kind, value))

    def add_array(self, key: str, kind: int, values: Sequence) -> None:
        """Adds a key whose value is an array of `kind`."""
        body = b"".join(_value(kind, value) for value in values)
        self._pair(key, struct.pack("<IIQ", ARRAY, kind, len(values)) + body)

    def _pair(self, key: str, value: bytes) -> None:
        name = self._architecture + key if key.startswith(".") else key
        self._pairs.append(string(name) + value)

    def add_tensor(self, name: str, shape: tuple[int, ...], values: Iterable[float] | None = None) -> None:
        """Adds a tensor.

        Args:
          name: its name, with the suffix.
          shape: its sizes, the slowest first: (outputs, inputs) for a matrix. The file has them the other way round.
          values: its elements in that order; None for zeros.
        """
        size = math.prod(shape)
        half = self._half and len(shape) > 1
        if values is None:
            data = bytes(size * (2 if half else 4))
        elif half:
            data = struct.pack(f"<{size}e", *values)
        else:
            floats = array("f", values)
            if len(floats) != size:
                raise ValueError(f"{name}: {len(floats)} values for the shape {shape}")
            if sys.byteorder == "big":
                floats.byteswap()
            data = floats.tobytes()
        self._tensors.append((name, shape, _TENSOR_F16 if half else _TENSOR_F32, data))

    def to_bytes(self) -> bytes:
        """The whole file."""
        tensors = [(name, tuple(reversed(shape)), kind, data) for name, shape, kind, data in self._tensors]
        return b"".join(parts(self._pairs, tensors))

    def write(self, path: str | Path) -> None:
        """Writes the file; folders in `path` are made."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(self.to_bytes())
