"""A GGUF file as a directory for MLX."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from elizainference._errors import BundleError, InvalidArgument
from elizainference.convert._architectures import Architecture, Target, architecture, row_order
from elizainference.convert._gguf import GgufFile, Tensor
from elizainference.convert._tokenizer import end_tokens, tokenizer_files

Progress = Callable[[int], object]

_ROWS_BYTES = 1 << 22  # of floats that are worked on at a time


def _f32(values: array[float]) -> bytes:
    if sys.byteorder == "big":
        values = array("f", values)
        values.byteswap()
    return values.tobytes()


def _f16(values: array[float]) -> bytes:
    # What is out of range is infinite, as a cast makes it.
    limited = [x if -65519.0 < x < 65519.0 else float("inf") if x > 0 else float("-inf") for x in values]
    return struct.pack(f"<{len(values)}e", *limited)


def _bf16(values: array[float]) -> bytes:
    bits = struct.unpack(f"<{len(values)}I", _f32(values))
    # To the nearest, ties to even.
    return struct.pack(f"<{len(bits)}H", *[min(b + 0x7FFF + (b >> 16 & 1), 0xFFFFFFFF) >> 16 for b in bits])


# {name: (as safetensors calls it, bytes, encoder)}
_ENCODERS = {"f32": ("F32", 4, _f32), "f16": ("F16", 2, _f16), "bf16": ("BF16", 2, _bf16)}
DTYPES = tuple(_ENCODERS)


def gguf_to_mlx(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    dtype: str = "f32",
    progress: Progress | None = None,
) -> Path:
    """Converts a GGUF file into the directory that the MLX backend and mlx-lm read.

    Architectures: llama (also SmolLM2), gemma3 and gemma4, without vision or experts. Quantised weights become floats.

    Args:
      source: the GGUF file.
      destination: the directory to make; it must not exist yet. It appears when it is complete.
      dtype: of the weights: "f32", "f16" or "bf16".
      progress: called with how many values more are written; their number: count_values.

    Returns:
      The directory.

    Raises:
      BundleError: the file is damaged, or holds what cannot be converted, or the destination exists.
      InvalidArgument: an unknown dtype.
    """
    if dtype not in _ENCODERS:
        raise InvalidArgument(f"dtype is {dtype!r}; it must be one of {', '.join(DTYPES)}")
    target = Path(destination)
    if target.exists() or target.is_symlink():
        raise BundleError(f"{str(target)!r} exists; give a directory that does not")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        with GgufFile(Path(source)) as gguf:
            partial.mkdir()
            model = architecture(gguf)
            config = model.config() | {"torch_dtype": {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[dtype]}
            _write_json(partial / "config.json", config)
            for name, document in tokenizer_files(gguf).items():
                _write_json(partial / name, document)
            _write_json(partial / "generation_config.json", {"eos_token_id": end_tokens(gguf)})
            _write_weights(partial / "model.safetensors", model, dtype, progress or (lambda _: None))
        os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def count_values(source: str | os.PathLike[str]) -> int:
    """How many values the tensors of a GGUF file have.

    Raises:
      BundleError: the file is damaged.
    """
    with GgufFile(Path(source)) as gguf:
        return sum(tensor.elements for tensor in gguf.tensors.values())


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def _write_weights(path: Path, model: Architecture, dtype: str, progress: Progress) -> None:
    name_of_type, size, encode = _ENCODERS[dtype]
    pairs = sorted(model.targets(), key=lambda pair: pair[1].name)
    header: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    offset = 0
    for tensor, target in pairs:
        end = offset + tensor.elements * size
        header[target.name] = {"dtype": name_of_type, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor, target in pairs:
            _write_tensor(file, model.gguf, tensor, target, encode, progress)
        file.flush()
        os.fsync(file.fileno())


def _write_tensor(
    file: BinaryIO,
    gguf: GgufFile,
    tensor: Tensor,
    target: Target,
    encode: Callable[[array[float]], bytes],
    progress: Progress,
) -> None:
    for values in _rows(gguf, tensor, target):
        if target.add:
            values = array("f", [x + target.add for x in values])
        file.write(encode(values))
        progress(len(values))


def _rows(gguf: GgufFile, tensor: Tensor, target: Target) -> Iterator[array[float]]:
    """The tensor's values in order, some rows at a time."""
    if target.heads:
        if len(tensor.shape) == 1:  # a bias
            values = tensor.type.values(gguf.bytes_of(tensor, 0, 1))
            yield array("f", [values[i] for i in row_order(len(values), target.heads)])
            return
        for row in row_order(tensor.shape[0], target.heads):
            yield tensor.type.values(gguf.bytes_of(tensor, row, 1))
        return
    width = tensor.shape[-1]
    count = tensor.elements // width
    some = max(1, _ROWS_BYTES // (4 * width))
    for first in range(0, count, some):
        yield tensor.type.values(gguf.bytes_of(tensor, first, min(some, count - first)))
