"""Cancelling at any moment, and what can be done afterwards."""

from __future__ import annotations

import itertools
import random
import threading

import pytest

from tests.support import abi
from tests.support.waiting import until_idle

PROMPT = "hello world the quick brown"


def _expect(context: abi.Context, max_tokens: int = 20) -> str:
    with context.open(max_tokens=max_tokens) as stream:
        stream.prefill(context.tokenize(PROMPT))
        return stream.generate()


@pytest.mark.parametrize("point", range(20))
def test_a_cancel_at_a_random_point(context, point):
    """From another thread, while a loop prefills and generates; then the stream is as good as new."""
    chance = random.Random(point)
    expected = _expect(context)
    with context.open(max_tokens=20) as stream:
        canceller = threading.Timer(chance.uniform(0, 0.02), stream.cancel)
        canceller.start()
        with pytest.raises(abi.Error) as caught:
            for turn in itertools.count():
                stream.prefill(context.tokenize(PROMPT, add_special=turn == 0))
                for _ in range(chance.randint(0, 30)):
                    stream.next(tokens_cap=chance.choice([1, 32]))
                if stream.stats()["kv_used"] > 400:  # nothing is left to do but to wait for it
                    canceller.join()
        assert caught.value.status == abi.CANCELLED
        canceller.join()
        for _ in range(3):
            with pytest.raises(abi.Error, match="the stream was cancelled"):
                stream.next()
        stream.reset()
        stream.prefill(context.tokenize(PROMPT))
        assert stream.generate() == expected


@pytest.mark.parametrize("pulled", [0, 1, 5])
def test_reset_keep_after_a_cancel_keeps_the_prompt(context, pulled):
    expected = _expect(context)
    tokens = context.tokenize(PROMPT)
    with context.open(max_tokens=20) as stream:
        stream.prefill(tokens)
        for _ in range(pulled):
            stream.next(tokens_cap=1)
        stream.cancel()
        with pytest.raises(abi.Error, match="cancelled"):
            stream.next()
        kept = stream.reset_keep(len(tokens) - 1)
        assert kept in (0, len(tokens) - 1)
        assert kept > 0 or pulled == 0
        stream.prefill(tokens[kept:])
        assert stream.generate() == expected


def test_a_cancel_before_the_first_call_is_not_lost(context):
    with context.open() as stream:
        stream.cancel()
        with pytest.raises(abi.Error) as caught:
            stream.prefill(context.tokenize(PROMPT))
        assert caught.value.status == abi.CANCELLED


def test_a_cancel_while_the_queue_is_full(context):
    """The library is held back in its callback then, and is let go."""
    with context.open() as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.next(tokens_cap=1)
        until_idle()
        stream.cancel()
        with pytest.raises(abi.Error):
            stream.next()
    with context.open(max_tokens=3) as stream:
        stream.prefill(context.tokenize(PROMPT))
        assert stream.generate()
