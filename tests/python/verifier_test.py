"""What set_verifier_callback tells about speculative decoding, and what becomes of an exception in it."""

from __future__ import annotations

import gc
import threading
import weakref

import elizainference as eliza
import pytest

from tests.support import models

BUNDLE = "tiny_gemma4_mtp_wrong"


@pytest.fixture
def engine():
    with eliza.Engine(models.bundle(BUNDLE), raw=True, max_tokens=24, drafter=models.drafter(BUNDLE)) as engine:
        yield engine


def test_events_tell_what_the_chunks_do(engine):
    events: list[eliza.VerifierEvent] = []
    threads = set()

    def callback(event: eliza.VerifierEvent) -> None:
        threads.add(threading.current_thread())
        events.append(event)

    engine.set_verifier_callback(callback)
    answer = engine.generate("abc")
    assert answer.text == models.alphabet("abc", 24)
    assert sum(len(event.accepted) for event in events) == answer.stats.accepted_tokens > 0
    # The drafter is wrong after e and after k.
    wrong = [event for event in events if event.rejected_from >= 0]
    assert wrong and all(event.rejected_to >= event.rejected_from for event in wrong)
    for event in wrong:
        assert event.corrected == [answer.tokens[event.rejected_from]]
    assert threads == {threading.main_thread()}


def test_none_ends_the_calls(engine):
    events: list[eliza.VerifierEvent] = []
    engine.set_verifier_callback(events.append)
    engine.set_verifier_callback(None)
    assert engine.generate("abc").stats.drafted_tokens > 0
    assert events == []


def test_a_callback_may_replace_itself(engine):
    events: list[eliza.VerifierEvent] = []

    def first(event: eliza.VerifierEvent) -> None:
        engine.set_verifier_callback(events.append)

    engine.set_verifier_callback(first)
    engine.generate("abc")
    assert events


def test_an_exception_comes_out_of_next(engine):
    engine.set_verifier_callback(lambda event: 1 // 0)
    stream = engine.stream("abc")
    with pytest.raises(ZeroDivisionError):
        list(stream)
    assert stream.stats.stop_reason == "cancelled"
    # Of that stream only.
    engine.set_verifier_callback(None)
    assert engine.generate("abc").text == models.alphabet("abc", 24)


def test_closing_lets_go_of_the_callback():
    class Listener:
        def __call__(self, event: eliza.VerifierEvent) -> None: ...

    listener = Listener()
    alive = weakref.ref(listener)
    with eliza.Engine(models.bundle(BUNDLE)) as engine:
        engine.set_verifier_callback(listener)
        del listener
        gc.collect()
        assert alive() is not None
    gc.collect()
    assert alive() is None
    with pytest.raises(eliza.InvalidArgument, match="closed"):
        engine.set_verifier_callback(print)
