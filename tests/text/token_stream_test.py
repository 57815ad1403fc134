"""The pull loop: whatever the source does and whatever the caller's buffers are, every token and every character
arrives once, in order, within the caps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import _text_testing
import pytest
from _text_testing import StopReason, TokenStream
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.utf8_reference import complete_characters, reference

INVALID_ARG = -2


class SourceFailed(Exception):
    pass


@dataclass
class Replay:
    """A source that decodes `texts` as tokens 0, 1, 2, …: `plan` says how many per step, and which steps fail after
    they appended them. When the texts are used up it stops for `stop`: in a step of its own, or with the last token."""

    texts: list[bytes]
    plan: list[tuple[int, bool]] = field(default_factory=list)
    stop: StopReason = StopReason.END_OF_GENERATION
    stop_with_last: bool = False
    decoded: int = 0
    drafted: int = 0
    failed: int = 0
    limits: list[int] = field(default_factory=list)

    def __call__(self, limit: int, out: list[tuple[int, bytes]]) -> tuple[StopReason, int, int]:
        wanted, fails = self.plan[len(self.limits)] if len(self.limits) < len(self.plan) else (1, False)
        self.limits.append(limit)
        count = min(wanted, limit, len(self.texts) - self.decoded)
        exhausted = self.decoded == len(self.texts)
        out.extend((i, self.texts[i]) for i in range(self.decoded, self.decoded + count))
        self.decoded += count
        if fails:
            self.failed += 1
            raise SourceFailed(self.failed)
        if self.stop_with_last:
            exhausted = self.decoded == len(self.texts)
        self.drafted += 3
        return (self.stop if exhausted else StopReason.NONE), 3, 2


def streaming(*texts: bytes, max_tokens: int = 0, **options) -> TokenStream:
    stream = TokenStream(Replay(list(texts), **options))
    stream.begin(max_tokens)
    return stream


EMOJI = "🙂".encode()
PIECES = st.one_of(
    st.sampled_from(
        [b"", b"a", b"hello", EMOJI, EMOJI[:1], EMOJI[1:3], EMOJI[3:], b"\xff", b"\0", b"\xe2\x82", b"\xac"]
    ),
    st.binary(max_size=6),
)
CAPS = st.tuples(st.integers(1, 5), st.integers(1, 12))


@settings(max_examples=400)
@given(
    texts=st.lists(PIECES, max_size=12),
    plan=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12),
    stop=st.sampled_from([StopReason.END_OF_GENERATION, StopReason.CONTEXT_FULL]),
    stop_with_last=st.booleans(),
    max_tokens=st.integers(0, 14),
    caps=st.lists(CAPS, max_size=30),
)
def test_any_source_and_any_buffers(texts, plan, stop, stop_with_last, max_tokens, caps) -> None:
    source = Replay(texts, plan, stop, stop_with_last)
    stream = TokenStream(source)
    stream.begin(max_tokens)
    total = min(len(texts), max_tokens) if max_tokens else len(texts)

    ids: list[int] = []
    text = b""
    drafted = accepted = 0
    status = 0
    calls = 0
    retry = None
    while status == 0:
        tokens_cap, text_cap = retry or (caps[calls] if calls < len(caps) else (8, 64))
        calls += 1
        assert calls < 200, "no progress"
        steps, failed, returned = len(source.limits), source.failed, len(ids)
        try:
            status, new_ids, new_text, new_drafted, new_accepted = stream.next(tokens_cap, text_cap)
        except SourceFailed as error:
            assert (error.args[0], source.failed) == (failed + 1, failed + 1)
            retry = None
        except _text_testing.Error as error:
            code, message = error.args
            assert code == INVALID_ARG
            needed = int(re.search(r"needs (\d+) bytes", message)[1])
            assert needed > text_cap
            # One byte less than what it asks for is refused in the same words; what it asks for is enough.
            with pytest.raises(_text_testing.Error, match=f"needs {needed} bytes"):
                stream.next(tokens_cap, needed - 1)
            retry = (tokens_cap, needed)
        else:
            assert not retry or new_ids or status == 1
            retry = None
            assert len(new_ids) <= tokens_cap
            assert len(new_text) < text_cap
            ids += new_ids
            text += new_text
            drafted += new_drafted
            accepted += new_accepted
            if status == 0:
                assert text == complete_characters(b"".join(texts[: len(ids)]))[0]
                assert stream.stop_reason == ""
        for limit in source.limits[steps:]:
            assert 1 <= limit <= tokens_cap
            if max_tokens:
                assert limit <= max_tokens - returned
        assert len(source.limits) - steps <= 1
        assert stream.generated == len(ids)
        assert stream.waiting == source.decoded - len(ids)

    assert status == 1
    assert ids == list(range(total))
    assert text == reference(b"".join(texts[:total]))
    assert (drafted, accepted) == (source.drafted, source.drafted // 3 * 2)
    assert stream.stop_reason in (["max_tokens"] if total < len(texts) else ["max_tokens", str(stop.name).lower()])
    steps = len(source.limits)
    for _ in range(2):
        assert stream.next(1, 1) == (1, [], b"", 0, 0)
    assert len(source.limits) == steps


def test_a_character_over_several_tokens_arrives_with_the_last() -> None:
    stream = streaming(EMOJI[:1], EMOJI[1:3], EMOJI[3:] + b"!")
    assert [stream.next()[:3] for _ in range(4)] == [
        (0, [0], b""),
        (0, [1], b""),
        (0, [2], EMOJI + b"!"),
        (1, [], b""),
    ]
    assert stream.stop_reason == "end_of_generation"


def test_several_tokens_of_one_step_fill_one_call() -> None:
    stream = streaming(b"a", b"", EMOJI[:2], EMOJI[2:], b"b", plan=[(5, False)])
    assert stream.next() == (0, [0, 1, 2, 3, 4], b"a" + EMOJI + b"b", 3, 2)


def test_a_token_that_does_not_fit_waits_and_is_not_decoded_again() -> None:
    stream = streaming(b"abc", b"defg", b"h", plan=[(3, False)])
    assert stream.next(8, 6)[:3] == (0, [0], b"abc")
    assert stream.next(8, 6) == (0, [1, 2], b"defgh", 0, 0)


def test_the_end_comes_after_the_tokens_that_wait() -> None:
    stream = streaming(b"abc", b"defg", plan=[(2, False)], stop_with_last=True)
    assert stream.next(8, 6)[:3] == (0, [0], b"abc")
    assert stream.next(8, 6)[:3] == (1, [1], b"defg")


def test_the_tail_comes_with_the_last_token() -> None:
    stream = streaming(b"a", EMOJI[:2], max_tokens=2)
    assert stream.next()[:3] == (0, [0], b"a")
    assert stream.next()[:3] == (1, [1], "\ufffd".encode())


def test_a_tail_that_does_not_fit_comes_alone() -> None:
    stream = streaming(b"abc" + EMOJI[:3], max_tokens=1)
    assert stream.next(1, 6)[:3] == (0, [0], b"abc")
    assert stream.stop_reason == ""
    with pytest.raises(_text_testing.Error, match="text_cap is 3.* needs 4 bytes"):
        stream.next(1, 3)
    assert stream.next(1, 4)[:3] == (1, [], "\ufffd".encode())
    assert stream.stop_reason == "max_tokens"


def test_text_larger_than_the_buffer_names_the_size_and_waits() -> None:
    stream = streaming(EMOJI[:2], EMOJI[2:] + b"!")
    assert stream.next(1, 1)[:3] == (0, [0], b"")
    for _ in range(2):
        with pytest.raises(_text_testing.Error, match="text_cap is 5.* needs 6 bytes") as raised:
            stream.next(1, 5)
        assert raised.value.args[0] == INVALID_ARG
    assert stream.next(1, 6) == (0, [1], EMOJI + b"!", 3, 2)


def test_tokens_decoded_before_a_failure_come_first_afterwards() -> None:
    stream = streaming(b"a", b"b", plan=[(2, True)])
    with pytest.raises(SourceFailed):
        stream.next()
    assert stream.next()[:3] == (0, [0, 1], b"ab")


def test_max_tokens_bounds_a_source_that_decodes_too_many() -> None:
    def greedy(_limit: int, out: list[tuple[int, bytes]]) -> tuple[StopReason, int, int]:
        out.extend((i, b"x") for i in range(10))
        return StopReason.NONE, 0, 0

    stream = TokenStream(greedy)
    stream.begin(3)
    assert stream.next(2)[:3] == (0, [0, 1], b"xx")
    assert stream.next(2)[:3] == (1, [2], b"x")


def test_next_before_begin() -> None:
    stream = TokenStream(Replay([b"a"]))
    with pytest.raises(_text_testing.Error, match="prefill") as raised:
        stream.next()
    assert raised.value.args[0] == INVALID_ARG


def test_reset_forgets_the_generation() -> None:
    stream = streaming(b"abc" + EMOJI[:2], b"d", plan=[(2, False)])
    assert stream.next(1)[:3] == (0, [0], b"abc")
    stream.reset()
    assert (stream.generated, stream.stop_reason) == (0, "")
    with pytest.raises(_text_testing.Error, match="prefill"):
        stream.next()


def test_begin_rearms_and_drops_what_waited() -> None:
    stream = streaming(b"abc" + EMOJI[:2], b"defg", b"h", plan=[(2, False)])
    assert stream.next(2, 5)[:3] == (0, [0], b"abc")
    stream.begin(1)
    assert stream.generated == 0
    assert stream.next()[:3] == (1, [2], b"h")
    assert (stream.generated, stream.stop_reason) == (1, "max_tokens")


@pytest.mark.parametrize("argument", ["tokens_out", "tokens_cap", "num_tokens_out", "text_out", "text_cap"])
def test_bad_buffers_are_named(argument: str) -> None:
    stream = streaming(b"a")
    with pytest.raises(_text_testing.Error, match=f"^.*{argument} is ") as raised:
        stream.next_with_bad(argument)
    assert raised.value.args[0] == INVALID_ARG
    assert stream.next()[:3] == (0, [0], b"a")
