"""cancel: from any thread, sticky until a reset, and the stream works afterwards."""

from __future__ import annotations

import threading

import pytest

from tests.conformance.common import PROMPT, answer, run
from tests.support import abi


def assert_cancelled(call, *arguments) -> None:
    with pytest.raises(abi.Error) as error:
        call(*arguments)
    assert error.value.status == abi.CANCELLED
    assert error.value.message


def test_it_is_sticky_until_a_reset(context):
    prompt = context.tokenize(PROMPT)
    expected = answer(context)
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(prompt)
        stream.next(tokens_cap=1)
        assert stream.cancel() == abi.OK
        for _ in range(2):
            assert_cancelled(stream.next)
            assert_cancelled(stream.prefill, prompt)
        assert stream.stats()["stop_reason"] == "cancelled"
        assert stream.cancel() == abi.OK
        stream.reset()
        stream.prefill(prompt)
        assert run(stream) == expected


def test_reset_keep_ends_it_too(context):
    expected = answer(context)
    prompt = context.tokenize(PROMPT)
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(prompt)
        stream.next(tokens_cap=1)
        stream.cancel()
        kept = stream.reset_keep(4)
        assert kept in (0, 4)
        stream.prefill(prompt[kept:])
        assert run(stream) == expected


def test_before_anything_was_asked(context):
    with context.open(max_tokens=4, context_size=256) as stream:
        stream.cancel()
        assert_cancelled(stream.prefill, context.tokenize(PROMPT))
        assert_cancelled(stream.next)


def test_after_the_end(context):
    with context.open(max_tokens=4, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        stream.cancel()
        assert_cancelled(stream.next)


def test_at_any_moment_of_a_prefill_and_a_generation(context):
    """Whatever it hits, the call returns, and the stream answers after a reset as if nothing had been."""
    expected = answer(context)
    hit = set()
    with context.open(max_tokens=120, context_size=2048) as stream:
        # A model may be made for less.
        words = context.tokenize(" " + PROMPT, add_special=False)
        long = (context.tokenize(PROMPT) + words * 300)[: stream.stats()["kv_capacity"] - 160]
        for delay_ms in (0, 1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90):
            canceller = threading.Timer(delay_ms / 1000, stream.cancel)
            canceller.start()
            where = "prefill"
            try:
                stream.prefill(long)
                where = "next"
                stream.generate(tokens_cap=1)
                where = "end"
            except abi.Error as error:
                assert error.status == abi.CANCELLED
            hit.add(where)
            canceller.join()
            stream.reset()
        assert hit & {"prefill", "next"}, "no cancel came in time"
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        assert run(stream) == expected


def test_a_call_that_runs_is_cancelled(context):
    """Without an end of its own: only the cancel can end it."""
    with context.open(context_size=256) as stream:
        first = threading.Event()
        outcomes: list[object] = []

        def generate() -> None:
            try:
                while True:
                    stream.reset()
                    stream.prefill(context.tokenize(PROMPT))
                    while not stream.next(tokens_cap=1).ended:
                        first.set()
            except BaseException as error:
                outcomes.append(error)
            finally:
                first.set()

        thread = threading.Thread(target=generate)
        thread.start()
        first.wait()
        # A reset of the other thread's may come between: the cancel that it swallows is followed by another.
        while thread.is_alive():
            stream.cancel()
            thread.join(0.05)
        (outcome,) = outcomes
        assert isinstance(outcome, abi.Error) and outcome.status == abi.CANCELLED
