"""The bundles of make_recall_gguf.py, and what their models say."""

from __future__ import annotations

from pathlib import Path

from tests.support.runfile import runfile

ARCHITECTURES = ["llama", "gemma3"]
_ALPHABET = "abcdefghijklmnopqrstuvwxyz "


def bundle(architecture: str) -> Path:
    """The bundle directory of //tests/llama_cpp:recall_ARCHITECTURE."""
    return runfile(f"tests/llama_cpp/recall_{architecture}_bundle")


def text(marker: str, after: str, count: int) -> str:
    """The `count` characters after a text that ends in `after` and holds the marker: "A", "B" or "" for neither."""
    step = {"A": 1, "B": -1, "": 0}[marker]
    start = _ALPHABET.index(after[-1])
    return "".join(_ALPHABET[(start + step * (i + 1)) % len(_ALPHABET)] for i in range(count))
