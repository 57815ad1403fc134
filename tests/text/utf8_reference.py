"""What the UTF-8 gate lets through, by Python's decoder."""

from __future__ import annotations

import itertools

# Some continuation of these finishes any character that can be finished: the second byte of E0 and F0 may not be too
# low, that of ED and F4 not too high.
_CONTINUATIONS = [bytes(rest) for size in (1, 2, 3) for rest in itertools.product((0x80, 0xBF), repeat=size)]


def reference(data: bytes) -> bytes:
    """The whole text of `data`."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd").encode()


def complete_characters(data: bytes) -> tuple[bytes, int]:
    """The text of `data` while more may follow, and how many bytes at its end wait for what follows.

    (Not codecs' incremental decoder: it holds back ED A0, the start of a surrogate, which can become nothing.)
    """
    held = next((size for size in (3, 2, 1) if size <= len(data) and _can_be_finished(data[-size:])), 0)
    return reference(data[: len(data) - held]), held


def _can_be_finished(start: bytes) -> bool:
    return any(_is_one_character(start + rest) for rest in _CONTINUATIONS)


def _is_one_character(data: bytes) -> bool:
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False
