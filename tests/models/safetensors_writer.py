"""Writes safetensors files, and reads them, with nothing but the standard library."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TYPES = {"F32": "f", "U32": "I", "I32": "i", "U16": "H"}  # {dtype: array's typecode}


@dataclass(frozen=True)
class Tensor:
    """A tensor's type, shape and bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, dtype: str, shape: tuple[int, ...], values: array) -> Tensor:
        """The tensor of an array whose type is that of `dtype`."""
        return cls(dtype, shape, values.tobytes())

    def values(self) -> array:
        """Its values, row after row."""
        values = array(_TYPES[self.dtype])
        values.frombytes(self.data)
        return values

    def rows(self) -> list[array]:
        """The rows of a matrix."""
        values, width = self.values(), self.shape[-1]
        return [values[i : i + width] for i in range(0, len(values), width)]


def dumps(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The file that holds the tensors, in their order."""
    header: dict = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors.values())


def load(path: Path) -> dict[str, Tensor]:
    """The tensors of a file."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {
        name: Tensor(
            entry["dtype"],
            tuple(entry["shape"]),
            data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]],
        )
        for name, entry in header.items()
    }
