"""The UTF-8 gate against Python's own decoder."""

from __future__ import annotations

import itertools

import _text_testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.utf8_reference import complete_characters, reference

# Bytes near the borders of Unicode's table 3-7, where uniform random bytes seldom go.
BORDERS = bytes(
    [0x00, 0x01, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF]
    + [0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
)
CHARACTERS = st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass"))
ASCII_RUNS = st.integers(0, 40).map(lambda size: b"x" * size)
BYTE_STRINGS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from(BORDERS), max_size=12).map(bytes),
    st.lists(st.one_of(CHARACTERS, ASCII_RUNS, st.binary(max_size=3)), max_size=8).map(b"".join),
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(borders)]


@given(BYTE_STRINGS)
def test_whole_strings_decode_as_python_decodes_them(data: bytes) -> None:
    assert _text_testing.to_valid_utf8(data) == reference(data)


@given(BYTE_STRINGS, st.lists(st.integers(0, 1 << 16), max_size=10))
def test_pieces_decode_as_the_whole(data: bytes, cuts: list[int]) -> None:
    gate = _text_testing.Utf8Gate()
    pushed = out = b""
    for piece in split(data, cuts):
        pushed += piece
        out += gate.push(piece)
        # Not only the same in the end: no character comes later than its last byte.
        assert (out, gate.held) == complete_characters(pushed)
    assert out + gate.finish() == reference(data)
    assert gate.held == 0


def test_every_short_sequence_of_border_bytes() -> None:
    for first in BORDERS:
        for second in BORDERS:
            for third in BORDERS:
                for tail in (b"", b"\x80", b"\xbf", b"A", b"\xf0\x9f"):
                    data = bytes([first, second, third]) + tail
                    assert _text_testing.to_valid_utf8(data) == reference(data), data


@pytest.mark.parametrize("offset", range(17))
@pytest.mark.parametrize("byte", [b"\0", b"\x80", b"\xff", "é".encode(), "🙂".encode(), b"\xf0\x9f"])
def test_the_ascii_path_stops_at_the_right_byte(offset: int, byte: bytes) -> None:
    data = b"a" * offset + byte + b"b" * (16 - offset)
    assert _text_testing.to_valid_utf8(data) == reference(data)


def test_an_emoji_of_four_tokens_comes_out_whole() -> None:
    gate = _text_testing.Utf8Gate()
    emoji = "🙂".encode()
    assert [gate.push(emoji[i : i + 1]) for i in range(4)] == [b"", b"", b"", emoji]


def test_reset_forgets_a_held_character() -> None:
    gate = _text_testing.Utf8Gate()
    gate.push("🙂".encode()[:3])
    gate.reset()
    assert gate.held == 0
    assert gate.push(b"a") == b"a"
    assert gate.finish() == b""
