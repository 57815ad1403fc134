"""Other threads run while the library works, and Ctrl-C gets through."""

from __future__ import annotations

import functools
import os
import signal
import threading

import pytest

from tests.ffi.fake import Fake
from tests.support.waiting import LIMIT_S, eventually


@pytest.fixture(scope="module")
def fake():
    fake = Fake()
    os.environ["ELIZA_INFERENCE_LIBRARY"] = str(fake.library.path)
    return fake


@pytest.fixture
def engine(fake, tmp_path):
    import elizainference as eliza

    fake.script()
    with eliza.Engine(tmp_path, raw=True) as engine:
        yield engine


@pytest.mark.parametrize("call", ["open", "prefill", "next"])
def test_python_runs_meanwhile(fake, engine, call):
    """The call waits in C++ until another thread of Python has seen that it does: it has let go of Python's lock."""
    open_stream = functools.partial(engine._context.open, **_config())
    stream = open_stream() if call != "open" else None
    seen = []

    def see_and_let_go() -> None:
        # Twice: the first answer may have been on its way when the lock was taken.
        seen.append(bool(eventually(fake.paused) and fake.paused()))
        fake.pause(False)

    thread = threading.Thread(target=see_and_let_go)
    fake.pause(True)
    thread.start()
    if stream is None:
        stream = open_stream()
    elif call == "prefill":
        stream.prefill([97])
    else:
        stream.next()
    thread.join()
    assert seen == [True]
    stream.close()


def test_a_backend_that_fails_is_no_stream_that_is_closed(fake, engine):
    """Some calls of the library have a status and no message."""
    import elizainference as eliza

    stream = engine._context.open(**_config())
    fake.script(reset=lambda session: -4)
    with pytest.raises(eliza.ElizaError, match="reset failed, with status -4") as caught:
        stream.reset()
    assert caught.value.status == -4
    stream.close()
    with pytest.raises(eliza.InvalidArgument, match="closed"):
        stream.reset()


def _ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.fixture
def interruptible():
    # A shell that started this in the background would have Ctrl-C ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def test_ctrl_c_while_the_prompt_is_read(fake, engine, interruptible):
    cancelled = threading.Event()

    def prefill(session, *arguments) -> int:
        _ctrl_c()
        # Ends only where it is cancelled.
        return -7 if cancelled.wait(LIMIT_S) else -4

    def cancel(session) -> int:
        cancelled.set()
        return 0

    fake.script(prefill=prefill, cancel=cancel)
    threads = threading.active_count()
    stream = engine.stream([97])
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert cancelled.is_set()
    assert threading.active_count() == threads
    assert fake.live_sessions() == 0
    assert list(stream) == []
    assert stream.stats.stop_reason == "cancelled"


def test_ctrl_c_while_tokens_come(fake, engine, interruptible):
    coming = threading.Event()

    def press() -> None:
        coming.wait()
        _ctrl_c()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt), engine.stream([97]) as stream:
        for _ in stream:
            coming.set()
    thread.join()
    assert fake.live_sessions() == 0


def test_streams_are_closed_when_nobody_has_them(fake, engine):
    stream = engine.stream([97])
    next(stream)
    assert fake.live_sessions() == 1
    del stream
    assert fake.live_sessions() == 0
    with pytest.raises(ZeroDivisionError), engine.stream([97]) as stream:
        for _ in stream:
            raise ZeroDivisionError
    assert fake.live_sessions() == 0


def test_many_threads_on_one_stream(engine):
    """Each token goes to one of them, whole."""
    stream = engine.stream([97], max_tokens=2000)
    texts: list[str] = []

    def work() -> None:
        texts.append("".join(chunk.text for chunk in stream))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "".join(texts) == "a" * 2000


def test_closing_while_others_read(fake, engine):
    import elizainference as eliza

    for _ in range(50):
        stream = engine.stream([97])
        started = threading.Event()
        ends: list[BaseException] = []

        def work(stream=stream, started=started, ends=ends) -> None:
            try:
                for _ in stream:
                    started.set()
            except eliza.ElizaError as error:
                ends.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        stream.close()
        thread.join()
        assert all(isinstance(end, (eliza.Cancelled, eliza.InvalidArgument)) for end in ends)
    assert fake.live_sessions() == 0


def test_closing_does_not_wait_for_a_long_prompt(fake, engine):
    import elizainference as eliza

    reading, cancelled = threading.Event(), threading.Event()

    def prefill(session, *arguments) -> int:
        reading.set()
        return -7 if cancelled.wait(LIMIT_S) else -4

    def cancel(session) -> int:
        cancelled.set()
        return 0

    fake.script(prefill=prefill, cancel=cancel)
    stream = engine.stream([97])
    ends: list[BaseException] = []

    def work() -> None:
        try:
            next(stream)
        except eliza.ElizaError as error:
            ends.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    reading.wait()
    stream.close()
    thread.join()
    assert [end.status for end in ends] == [-7]


def test_an_exception_of_a_backend_is_an_error(fake, engine):
    import elizainference as eliza

    def next(session, *arguments) -> int:
        fake.throw(2)  # std::bad_alloc
        return 0

    fake.script(next=next)
    with pytest.raises(eliza.OutOfMemory):
        engine.generate([97])
    assert fake.live_sessions() == 0


def _config():
    from elizainference import _options

    return _options.stream_config(_options.DEFAULTS)
