"""Malformed headers of .litertlm files by class, the same ones on every run: {class: {name: bytes}}."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.models import litertlm_writer
from tests.models.litertlm_writer import HEADER, TF_LITE_MODEL, Flatbuffer

_EDGES = [0, 1, 2, 2**15 - 1, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1]


def good() -> bytes:
    """A header that is right, of a file of nothing else."""
    items = {"model_type": "tf_lite_prefill_decode", "backend_constraint": "npu", "soc_model": "SM8750"}
    return litertlm_writer.dumps((TF_LITE_MODEL, items), (5, {}))


def nothing() -> dict[str, bytes]:
    """Files that were never models."""
    start = b"LITERTLM" + struct.pack("<I", 1)
    cases = {
        "empty": b"",
        "one byte": b"L",
        "zeros": bytes(100_000),
        "a web page": b"<html><body>404 Not Found</body></html>" * 100,
        "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 100\n",
        "a GGUF file": b"GGUF" + bytes(1000),
        "the magic alone": b"LITERTLM",
        "a magic of another case": b"LiteRTLM" + good()[8:],
        "a header of zeros": start + bytes(12) + struct.pack("<Q", 256) + bytes(300),
        "a header of ones": start + bytes(12) + struct.pack("<Q", 256) + b"\xff" * 300,
        "no section": litertlm_writer.dumps(),
        "no model": litertlm_writer.dumps((5, {})),
        "a model of another type": litertlm_writer.dumps((TF_LITE_MODEL, {"model_type": "tf_lite_vision_encoder"})),
    }
    for edge in (0, 2, 2**16, 2**31, 2**32 - 1):
        cases[f"version {edge}"] = good()[:8] + struct.pack("<I", edge) + good()[12:]
    for edge in (0, 31, 32, 2**16 + 1, 2**31, 2**32, 2**63, 2**64 - 1):
        cases[f"a header that ends at {edge}"] = good()[:24] + struct.pack("<Q", edge) + good()[32:]
    return cases


def truncated() -> dict[str, bytes]:
    """Cut off anywhere."""
    return {f"cut off after {at}": good()[:at] for at in range(4, len(good()), 4)}


def lying_fields() -> dict[str, bytes]:
    """Every 32-bit field at the edges of what it can say: offsets, counts and lengths."""
    cases = {}
    for at in range(HEADER, len(good()), 4):
        for edge in _EDGES:
            cases[f"{edge} at {at}"] = good()[:at] + struct.pack("<I", edge) + good()[at + 4 :]
    return {name: data for name, data in cases.items() if data != good()}


def sections() -> dict[str, bytes]:
    """Sections outside of the file, or the wrong way round."""
    cases = {
        f"a section that ends at {edge}": litertlm_writer.dumps((TF_LITE_MODEL, {}), ends=edge)
        for edge in (len(good()) * 2, 2**31, 2**32, 2**62, 2**63, 2**64 - 1)
    }
    buffer = Flatbuffer()
    backwards = buffer.table([("o", buffer.items({})), ("Q", 64), ("Q", 32), ("B", TF_LITE_MODEL)])
    return cases | {"a section that ends before it begins": litertlm_writer.file(buffer, buffer.vector([backwards]))}


def giants() -> dict[str, bytes]:
    """Much work in a small file: lists whose entries are all the same one, and long names."""
    cases = {}
    for entries in (257, 2000, 7000):
        buffer = Flatbuffer()
        key = buffer.add(struct.pack("<I", 4000) + b"k" * 4001)
        pair = buffer.table([("o", key), ("B", 9), ("o", buffer.table([("o", key)]))])
        section = buffer.table([("o", buffer.vector([pair] * entries)), ("Q", 0), ("Q", 0), ("B", TF_LITE_MODEL)])
        cases[f"{entries} items in {entries} sections"] = litertlm_writer.file(
            buffer, buffer.vector([section] * entries)
        )
    for entries in (2**16, 2**20, 2**31, 2**32 - 1):
        buffer = Flatbuffer()
        cases[f"{entries} sections in no room"] = litertlm_writer.file(buffer, buffer.add(struct.pack("<I", entries)))
    items = {"backend_constraint": "npu", "soc_model": "\x1b[2J" + "x" * 60_000}
    cases["a SoC of 60,000 letters"] = litertlm_writer.dumps((TF_LITE_MODEL, items))
    items = {"backend_constraint": "y" * 60_000}
    cases["a backend of 60,000 letters"] = litertlm_writer.dumps((TF_LITE_MODEL, items))
    items = {"backend_constraint": ",\x1b[2J" * 12_000}
    cases["12,000 backends"] = litertlm_writer.dumps((TF_LITE_MODEL, items))
    return cases


CLASSES: dict[str, Callable[[], dict[str, bytes]]] = {
    "nothing": nothing,
    "truncated": truncated,
    "lying fields": lying_fields,
    "sections": sections,
    "giants": giants,
}
