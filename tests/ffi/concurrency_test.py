"""Calls from several threads, and from callbacks: who waits for whom, and who does not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.support import abi
from tests.support.waiting import LIMIT_S, until_idle


@contextmanager
def in_background(function, *arguments):
    """Runs `function` on another thread during the body; the value is its future."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(function, *arguments)


class Blocking:
    """A script whose `next` lasts until a cancel, and that notes what happens."""

    def __init__(self, fake, **hooks):
        self.events = []
        self.entered = threading.Event()
        self.cancelled = threading.Event()
        fake.script(next=self._next, cancel=self._cancel, reset=self._reset, deleted=self._deleted, **hooks)

    def _next(self, *_):
        self.events.append("next")
        self.entered.set()
        assert self.cancelled.wait(LIMIT_S)
        self.events.append("next ends")
        return abi.CANCELLED

    def _cancel(self, session):
        self.events.append("cancel")
        self.cancelled.set()
        return abi.OK

    def _reset(self, session):
        self.events.append("reset")
        return abi.OK

    def _deleted(self, session):
        self.events.append("deleted")


def status_of(function) -> int | None:
    """The status of the abi.Error that `function` raises."""
    with pytest.raises(abi.Error) as error:
        function()
    return error.value.status


def test_cancel_reaches_a_next_on_another_thread(fake, context):
    script = Blocking(fake)
    with context.open() as stream, in_background(status_of, stream.next) as status:
        assert script.entered.wait(LIMIT_S)
        assert stream.cancel() == abi.OK
        assert status.result(LIMIT_S) == abi.CANCELLED
        assert script.events == ["next", "cancel", "next ends"]


def test_close_cancels_and_waits_for_a_next_on_another_thread(fake, context):
    script = Blocking(fake)
    stream = context.open()
    with in_background(status_of, stream.next) as status:
        assert script.entered.wait(LIMIT_S)
        stream.close()
        assert script.events == ["next", "cancel", "next ends", "deleted"]
        assert status.result(LIMIT_S) == abi.CANCELLED


def test_destroy_cancels_and_waits_for_a_next_on_another_thread(fake, tmp_path):
    script = Blocking(fake)
    context = abi.Context(tmp_path, fake.library)
    stream = context.open()
    with in_background(status_of, stream.next) as status:
        assert script.entered.wait(LIMIT_S)
        context.close()
        assert script.events == ["next", "cancel", "next ends", "deleted"]
        assert status.result(LIMIT_S) == abi.CANCELLED


def test_a_call_that_waits_for_its_turn_when_the_stream_closes_is_cancelled(fake, context):
    script = Blocking(fake)
    stream = context.open()
    waiting = [
        lambda: fake.library.llm_stream_reset(stream.handle),
        lambda: fake.library.llm_stream_reset_keep(stream.handle, 1),
        lambda: fake.library.llm_stream_set_seed(stream.handle, 1),
    ]
    handle = stream.handle
    with in_background(status_of, stream.next) as status, ThreadPoolExecutor(3) as pool:
        assert script.entered.wait(LIMIT_S)
        statuses = [pool.submit(call) for call in waiting]
        fake.library.llm_stream_close(handle)
        assert status.result(LIMIT_S) == abi.CANCELLED
        # Those that came before the close waited in vain, those after it found it closed.
        assert {waited.result(LIMIT_S) for waited in statuses} <= {abi.CANCELLED, abi.INVALID_ARG}
    assert "reset" not in script.events
    assert script.events.count("deleted") == 1


def test_statistics_do_not_wait_where_the_backend_counts_for_all_threads(fake, context):
    script = Blocking(fake, has_concurrent_stats=lambda session: 1)
    with context.open() as stream, in_background(status_of, stream.next) as status:
        assert script.entered.wait(LIMIT_S)
        assert '"backend":"fake"' in fake.library.call_for_string("llm_stream_stats", stream.handle)
        assert not status.done()
        stream.cancel()
        assert status.result(LIMIT_S) == abi.CANCELLED


def test_statistics_wait_for_their_turn_where_it_does_not(fake, context):
    script = Blocking(fake)
    with context.open() as stream, in_background(status_of, stream.next) as status:
        assert script.entered.wait(LIMIT_S)
        with in_background(fake.library.call_for_string, "llm_stream_stats", stream.handle) as stats:
            until_idle()
            assert not stats.done()
            stream.cancel()
            assert '"backend":"fake"' in stats.result(LIMIT_S)
        assert status.result(LIMIT_S) == abi.CANCELLED


def test_an_open_in_flight_is_lost_with_its_context(fake, tmp_path):
    opening, release = threading.Event(), threading.Event()

    def open_slowly(*_):
        opening.set()
        assert release.wait(LIMIT_S)
        return 1

    fake.script(open=open_slowly)
    context = abi.Context(tmp_path, fake.library)
    handle = context.handle
    with in_background(context.open) as opened, in_background(_after(opening, context.close)) as destroyed:
        assert opening.wait(LIMIT_S)
        while fake.library.mmap_evict(handle, b"text", None) == abi.OK:
            pass  # not destroyed yet
        assert not destroyed.done()
        release.set()
        destroyed.result(LIMIT_S)
        with pytest.raises(abi.Error, match="the context was closed"):
            opened.result(LIMIT_S)


def _after(event, function):
    def run():
        assert event.wait(LIMIT_S)
        function()

    return run


def test_calls_on_one_stream_take_turns(fake, context):
    inside = []

    def note(*_):
        inside.append(1)
        assert len(inside) == 1
        inside.pop()
        return 0

    fake.script(next=note, prefill=note, reset=lambda session: note(), reset_keep=lambda session, n_keep: note())
    with context.open() as stream:

        def use():
            for _ in range(200):
                stream.prefill([1])
                stream.next()
                stream.reset()
                assert stream.reset_keep(0) == 0

        with ThreadPoolExecutor(4) as pool:
            for user in [pool.submit(use) for _ in range(4)]:
                user.result(LIMIT_S)


def test_eight_streams_run_at_the_same_time(fake, context):
    # Every next waits until all eight are inside one.
    together = threading.Barrier(8, timeout=LIMIT_S)
    fake.script(next=lambda *_: together.wait() and 0)

    def use():
        with context.open() as stream:
            for _ in range(20):
                stream.next()

    with ThreadPoolExecutor(8) as pool:
        for user in [pool.submit(use) for _ in range(8)]:
            user.result(LIMIT_S)


def test_open_and_close_from_many_threads(fake, context):
    def use():
        for _ in range(100):
            with context.open(max_tokens=2) as stream:
                stream.prefill([1])
                assert stream.generate() == "aa"

    with ThreadPoolExecutor(8) as pool:
        for user in [pool.submit(use) for _ in range(8)]:
            user.result(LIMIT_S)


class TestCallbacks:
    """What is called from inside a call must not wait for that call."""

    def test_a_call_on_the_own_stream_is_refused(self, fake, context):
        refused = []

        def call_again(*_):
            for call in [stream.next, lambda: stream.prefill([1])]:
                with pytest.raises(abi.Error) as error:
                    call()
                refused.append(error.value)
            refused.append(fake.library.llm_stream_reset(stream.handle))
            return 1

        fake.script(next=call_again)
        with context.open() as stream:
            assert stream.next().ended
        assert [getattr(error, "status", error) for error in refused] == [abi.INVALID_ARG] * 3
        assert "callback" in refused[0].message

    def test_cancel_of_the_own_stream_works(self, fake, context):
        cancelled = []
        fake.script(next=lambda *_: stream.cancel() or abi.CANCELLED, cancel=lambda session: cancelled.append(1) or 0)
        with context.open() as stream:
            assert status_of(stream.next) == abi.CANCELLED
        assert cancelled[0]

    def test_a_call_on_another_stream_works(self, fake, context):
        other = context.open(max_tokens=1)
        inner = []

        def call_other(session, *_):
            if not inner:
                inner.append(0)
                inner[0] = other.next().ended
            return 1

        fake.script(next=call_other)
        with other, context.open() as stream:
            assert stream.next().ended
        assert inner == [True]

    @pytest.mark.parametrize("what", ["stream", "context"])
    def test_a_close_takes_effect_when_the_call_returns(self, fake, tmp_path, what):
        events = []
        context = abi.Context(tmp_path, fake.library)
        stream = context.open()
        handle = stream.handle

        def close(*_):
            (stream if what == "stream" else context).close()
            events.append(fake.library.llm_stream_reset(handle))
            return 1

        fake.script(next=close, deleted=lambda session: events.append("deleted"))
        assert stream.next().ended
        assert events == [abi.INVALID_ARG, "deleted"]
        stream.close()
        context.close()

    def test_two_callbacks_that_close_each_others_stream_do_not_wait_for_each_other(self, fake, context):
        streams = [context.open(), context.open()]
        handles = [stream.handle for stream in streams]
        together = threading.Barrier(2, timeout=LIMIT_S)

        def close_the_other(session, *_):
            other = handles[1] if session == min(sessions) else handles[0]
            together.wait()
            fake.library.llm_stream_close(other)
            together.wait()
            return 1

        sessions = []
        fake.script(set_seed=lambda session, seed: sessions.append(session) or 0)
        for handle in handles:
            fake.library.llm_stream_set_seed(handle, 0)
        fake.script(next=close_the_other)
        with ThreadPoolExecutor(2) as pool:
            for ended in [pool.submit(stream.next) for stream in streams]:
                assert ended.result(LIMIT_S).ended
        assert fake.live_sessions() == 0
