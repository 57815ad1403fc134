"""The bundles of //tests/models, and what their models say."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

from tests.support.runfile import runfile

_ALPHABET = "abcdefghijklmnopqrstuvwxyz "
_UTF8 = "a😀b€céd你"


def bundle(name: str) -> Path:
    """The bundle directory of //tests/models:NAME, which the test names in its `data`."""
    return runfile(f"tests/models/{name}_bundle")


def text_model(name: str) -> Path:
    """The GGUF file of that bundle."""
    return bundle(name) / "text" / f"{name}.gguf"


def drafter(name: str) -> Path:
    """The drafter of a tiny_gemma4_mtp bundle."""
    return bundle(name) / "mtp" / f"drafter-{name}.gguf"


def alphabet(after: str, count: int) -> str:
    """The `count` characters, a token each, that the *_cycle and tiny_gemma4_mtp models say after `after`."""
    return _walk(_ALPHABET, after, count)


def utf8(after: str, count: int) -> str:
    """The `count` characters that tiny_llama_utf8 says after `after`: 16 tokens for 8 of them."""
    return _walk(_UTF8, after, count)


def _walk(walk: str, after: str, count: int) -> str:
    start = walk.index(after[-1]) + 1
    return "".join(islice(cycle(walk), start, start + count))
