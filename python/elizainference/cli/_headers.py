"""Headers of model files, read in bounded code: a file may be anybody's, and may lie about its sizes.

Nothing is allocated or looped over for what a file only claims: every size is held against the file's own, and against
limits that no real model comes near.
"""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

from elizainference._errors import BundleError

_MAX_HEADER = 256 << 20  # bytes that are read of a header at most
_MAX_STRING = 1 << 20
_MAX_DIMENSIONS = 8
_SHOWN_STRING = 200  # characters of a value that are kept
_SHOWN_ITEMS = 8

_GGUF_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
# ggml.h's ggml_type
_GGML_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0", 42: "Q2_0",
}  # fmt: skip


def kind(path: Path) -> str | None:
    """What a file or folder is: "gguf", "litertlm", "safetensors" (a folder with config.json, too), or None."""
    if path.is_dir():
        has_weights = any(path.glob("*.safetensors")) and (path / "config.json").is_file()
        return "safetensors" if has_weights else None
    if path.suffix == ".safetensors":
        return "safetensors"
    with open(path, "rb") as file:
        magic = file.read(8)
    return "gguf" if magic[:4] == b"GGUF" else "litertlm" if magic == b"LITERTLM" else None


class _Reader:
    """Numbers and strings of a file, none of them from behind its end."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self.size = os.fstat(file.fileno()).st_size

    def error(self, what: str) -> BundleError:
        return BundleError(f"{self._name}: {what}, at byte {self._file.tell()}; download it again")

    def bytes(self, count: int) -> bytes:
        self._require(count)
        return self._file.read(count)

    def skip(self, count: int) -> None:
        self._require(count)
        self._file.seek(count, os.SEEK_CUR)

    def _require(self, count: int) -> None:
        if self._file.tell() + count > min(self.size, _MAX_HEADER):
            raise self.error(f"the header claims {count} bytes more than there are, or may be")

    def number(self, format: str) -> Any:
        return struct.unpack("<" + format, self.bytes(struct.calcsize("<" + format)))[0]

    def count(self, what: str, at_least: int) -> int:
        """A number of things that take `at_least` bytes each."""
        count = int(self.number("Q"))
        if count * at_least > self.size:
            raise self.error(f"the header claims {count} {what}, more than the file can hold")
        return count

    def string(self) -> str:
        length = int(self.number("Q"))
        if length > _MAX_STRING:
            raise self.error(f"the header claims a string of {length} bytes")
        return self.bytes(length).decode(errors="replace")


def gguf(path: Path) -> dict[str, Any]:
    """The header of a GGUF file: "version", "metadata", "tensors", "parameters", "types".

    Raises:
      BundleError: it is none, or it contradicts itself.
    """
    with open(path, "rb") as file:
        reader = _Reader(file, str(path))
        if reader.bytes(4) != b"GGUF":
            raise reader.error("no GGUF file")
        version = reader.number("I")
        if version not in (2, 3):
            raise reader.error(f"GGUF version {version}, where 2 and 3 are known")
        tensors = reader.count("tensors", 24)
        metadata = {}
        for _ in range(reader.count("keys", 13)):
            key = reader.string()
            metadata[key] = _gguf_value(reader, reader.number("I"))
        types: dict[str, int] = {}
        parameters = last = 0
        for _ in range(tensors):
            reader.string()
            dimensions = reader.number("I")
            if dimensions > _MAX_DIMENSIONS:
                raise reader.error(f"a tensor with {dimensions} dimensions")
            elements = math.prod(int(reader.number("Q")) for _ in range(dimensions))
            type_id = reader.number("I")
            last = max(last, int(reader.number("Q")))
            type_name = _GGML_TYPES.get(type_id, f"type {type_id}")
            types[type_name] = types.get(type_name, 0) + 1
            parameters += elements
        if tensors and file.tell() + last >= reader.size:
            raise reader.error(f"the last tensor begins {last} bytes after the header, which is beyond the file's end")
    return {
        "format": "gguf",
        "version": version,
        "tensors": tensors,
        "parameters": parameters,
        "types": types,
        "metadata": metadata,
    }


def _gguf_value(reader: _Reader, type_id: int, depth: int = 0) -> Any:
    if type_id == _STRING:
        return _shortened(reader.string())
    if type_id != _ARRAY:
        if type_id not in _GGUF_SCALARS:
            raise reader.error(f"a value of the unknown type {type_id}")
        return reader.number(_GGUF_SCALARS[type_id])
    if depth > 3:
        raise reader.error("arrays nested deeper than 3 levels")
    item = reader.number("I")
    count = reader.count("items", 1)
    first = [_gguf_value(reader, item, depth + 1) for _ in range(min(count, _SHOWN_ITEMS))]
    if count <= _SHOWN_ITEMS:
        return first
    if item in _GGUF_SCALARS:
        reader.skip((count - _SHOWN_ITEMS) * struct.calcsize("<" + _GGUF_SCALARS[item]))
    else:
        for _ in range(count - _SHOWN_ITEMS):
            _gguf_value(reader, item, depth + 1)
    return {"count": count, "first": first}


def safetensors(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: "metadata", "tensors", "parameters", "types".

    Raises:
      BundleError: it is none, or it contradicts itself.
    """
    with open(path, "rb") as file:
        reader = _Reader(file, str(path))
        length = int(reader.number("Q"))
        if length > 100_000_000:  # the format's own limit
            raise reader.error(f"the header claims to be {length} bytes long")
        try:
            header = json.loads(reader.bytes(length))
            metadata = {str(k): _shortened(str(v)) for k, v in header.pop("__metadata__", {}).items()}
            types: dict[str, int] = {}
            parameters = 0
            for tensor in header.values():
                dtype = str(tensor["dtype"])
                types[dtype] = types.get(dtype, 0) + 1
                parameters += _elements(reader, tensor["shape"])
                if not 0 <= tensor["data_offsets"][0] <= tensor["data_offsets"][1] <= reader.size - length - 8:
                    raise reader.error("a tensor lies outside the file")
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
            raise reader.error(f"no safetensors file: {error!r}") from None
    return {
        "format": "safetensors",
        "tensors": len(header),
        "parameters": parameters,
        "types": types,
        "metadata": metadata,
    }


def _elements(reader: _Reader, shape: list[int]) -> int:
    if len(shape) > _MAX_DIMENSIONS or not all(0 <= int(size) < 2**63 for size in shape):
        raise reader.error("a tensor of an impossible shape")
    return math.prod(map(int, shape))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_STRING else f"{text[:_SHOWN_STRING]}… ({len(text)} characters)"
