"""Reads GGUF files, which may come from strangers: every size is checked before it is used.

The format is described in ggml's docs/gguf.md.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from elizainference._errors import BundleError
from elizainference.convert._dequantise import TYPES, TensorType

# {number in the file: (letter of `struct` and `array`, bytes)}
_SCALARS = {
    0: ("B", 1),
    1: ("b", 1),
    2: ("H", 2),
    3: ("h", 2),
    4: ("I", 4),
    5: ("i", 4),
    6: ("f", 4),
    7: ("?", 1),
    10: ("Q", 8),
    11: ("q", 8),
    12: ("d", 8),
}
_STRING, _ARRAY = 8, 9
_MOST_VALUES = 1 << 23  # of all arrays; the largest vocabularies have 2**18 tokens, and twice as many merges
_MOST_ENTRIES = 1 << 17  # keys, and tensors
_MOST_ELEMENTS = 1 << 40  # of a tensor


@dataclass(frozen=True)
class Tensor:
    """A tensor's place in the file.

    Attributes:
      shape: its sizes, the slowest first: (outputs, inputs) for a matrix. The file has them the other way round.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int

    @property
    def elements(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)


class GgufFile:
    """A GGUF file, open: its metadata, and its tensors by name.

    Raises:
      BundleError: it is none, or is cut off, or says what cannot be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            raise BundleError(f"{str(path)!r} is empty, and no GGUF file") from None
        try:
            self._at = 0
            self._values = 0  # of arrays
            self._read()
        except BaseException:
            self._map.close()
            raise

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._map.close()

    def fail(self, problem: str) -> BundleError:
        """The error that this file has a problem."""
        return BundleError(f"{str(self.path)!r}: {problem}")

    def bytes_of(self, tensor: Tensor, first: int, rows: int) -> bytes:
        """Some of a tensor's rows as they are in the file; a row is what its last size counts."""
        size = tensor.type.bytes_of(tensor.shape[-1])
        begin = tensor.offset + first * size
        return self._map[begin : begin + rows * size]

    def value(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A value of the metadata.

        Args:
          key: a key that begins with "." is prefixed with the architecture.
          kind: what it must be.
          default: for a key that is not there; None: the key must be there.
        """
        name = self.architecture + key if key.startswith(".") else key
        value = self.metadata.get(name, default)
        if value is None:
            raise self.fail(f"has no {name} among its metadata")
        if not isinstance(value, kind):
            raise self.fail(f"its {name} is {str(value)[:60]!r}, which cannot be")
        return value

    def number(self, key: str, least: float, most: float, default: float | None = None) -> Any:
        """A number of the metadata within bounds."""
        value = self.value(key, (int, float), default)
        if isinstance(value, bool) or not least <= value <= most:
            raise self.fail(f"its {key.lstrip('.')} is {value}; it must be from {least} to {most}")
        return value

    # -- Reading ----------------------------------------------------------------------------------

    def _read(self) -> None:
        if self._take(4) != b"GGUF":
            raise self.fail("is no GGUF file: it does not begin with GGUF")
        version = self._scalar("I", 4)
        if version not in (2, 3):
            raise self.fail(f"is of GGUF version {version}; 2 and 3 are known (a big-endian file looks like this too)")
        tensors, pairs = self._scalar("Q", 8), self._scalar("Q", 8)
        if tensors > _MOST_ENTRIES or pairs > _MOST_ENTRIES:
            raise self.fail(f"says that it has {tensors} tensors and {pairs} keys, which cannot be")
        self.metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._string()
            self.metadata[key] = self._value(self._scalar("I", 4), key)
        self.architecture: str = str(self.metadata.get("general.architecture", ""))
        entries = [self._entry() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 8 <= alignment <= 1 << 20 or alignment & (alignment - 1):
            raise self.fail(f"its general.alignment is {alignment!r}, which is no power of two")
        data = -(-self._at // alignment) * alignment
        self.tensors: dict[str, Tensor] = {}
        for name, shape, kind, offset in entries:
            tensor = Tensor(name, shape, kind, data + offset)
            if tensor.offset + kind.bytes_of(tensor.elements) > len(self._map):
                raise self.fail(f"its tensor {name} lies beyond the end: the file is cut off")
            if name in self.tensors:
                raise self.fail(f"has two tensors {name}")
            self.tensors[name] = tensor

    def _entry(self) -> tuple[str, tuple[int, ...], TensorType, int]:
        name = self._string()
        dimensions = self._scalar("I", 4)
        if not 1 <= dimensions <= 4:
            raise self.fail(f"its tensor {name[:60]} has {dimensions} dimensions")
        shape = tuple(reversed([self._scalar("Q", 8) for _ in range(dimensions)]))
        number = self._scalar("I", 4)
        if number not in TYPES:
            known = ", ".join(kind.name for kind in TYPES.values())
            raise self.fail(f"its tensor {name[:60]} is of type {number}, which cannot be converted; known are {known}")
        kind = TYPES[number]
        if not all(1 <= size < _MOST_ELEMENTS for size in shape) or math.prod(shape) > _MOST_ELEMENTS:
            raise self.fail(f"its tensor {name[:60]} has the shape {shape}")
        if shape[-1] % kind.block:
            raise self.fail(
                f"its tensor {name[:60]} has rows of {shape[-1]}, no multiple of {kind.name}'s {kind.block}"
            )
        return name, shape, kind, self._scalar("Q", 8)

    def _take(self, size: int) -> bytes:
        if size > len(self._map) - self._at:
            raise self.fail("is cut off")
        self._at += size
        return self._map[self._at - size : self._at]

    def _scalar(self, letter: str, size: int) -> Any:
        return struct.unpack("<" + letter, self._take(size))[0]

    def _string(self) -> str:
        return self._take(self._scalar("Q", 8)).decode(errors="replace")

    def _value(self, kind: int, key: str) -> Any:
        if kind in _SCALARS:
            return self._scalar(*_SCALARS[kind])
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            raise self.fail(f"its {key[:60]} is of the unknown type {kind}")
        element, count = self._scalar("I", 4), self._scalar("Q", 8)
        self._values += count
        if self._values > _MOST_VALUES:
            raise self.fail(f"its {key[:60]} has {count} values, which cannot be")
        if element == _STRING:
            return [self._string() for _ in range(count)]
        if element not in _SCALARS:
            raise self.fail(f"its {key[:60]} holds values of the unknown type {element}")
        letter, size = _SCALARS[element]
        return list(struct.unpack(f"<{count}{letter}", self._take(count * size)))
