"""Handles, threads and memory."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int32, c_size_t, c_void_p

import pytest

from tests.conformance.common import PROMPT, answer, refused, run
from tests.support import abi, memory
from tests.support.isolated import isolated


# The first, since not every runtime can be used on both sides of a fork.
def test_nothing_is_written_and_nothing_ends_the_process(backend):
    bundle = backend.bundle("noise")

    @isolated
    def use():
        with abi.Context(bundle) as context, context.open(max_tokens=8, context_size=256) as stream:
            stream.prefill(context.tokenize(PROMPT))
            stream.generate()
            for call in (lambda: stream.prefill([-1]), lambda: context.open(max_tokens=-1), lambda: stream.next(0, 0)):
                with pytest.raises(abi.Error):
                    call()

    use()


def test_null_arguments(context):
    library = context.library
    with context.open(max_tokens=8, context_size=256) as stream:
        with refused(abi.INVALID_ARG):
            library.call("llm_stream_prefill", stream.handle, None, 3)
        stream.prefill(context.tokenize(PROMPT))
        tokens, count = (c_int32 * 8)(), c_size_t()
        text, drafted, accepted = ctypes.create_string_buffer(64), c_int32(), c_int32()
        right = [tokens, 8, byref(count), text, 64, byref(drafted), byref(accepted)]
        for missing in (0, 2, 3):
            arguments = [None if i == missing else argument for i, argument in enumerate(right)]
            with refused(abi.INVALID_ARG, "NULL"):
                library.call("llm_stream_next", stream.handle, *arguments)
        # The two counts are the caller's choice, and every message is.
        assert library.llm_stream_next(stream.handle, *right[:5], None, None, None) >= 0
        assert library.llm_stream_prefill(stream.handle, None, 3, None) == abi.INVALID_ARG
        for name in ("llm_stream_save_slot", "llm_stream_restore_slot"):
            with refused(abi.INVALID_ARG):
                library.call(name, stream.handle, None)


def test_stale_handles(context):
    library = context.library
    stream = context.open(max_tokens=8, context_size=256)
    handle = stream.handle
    stream.close()
    stale = abi.Stream(library, handle)
    for call in (stale.next, lambda: stale.prefill([1])):
        with refused(abi.INVALID_ARG, "closed"):
            call()
    assert stale.cancel() == abi.INVALID_ARG
    assert library.llm_stream_reset(handle) == abi.INVALID_ARG
    assert stale.reset_keep(1) == abi.INVALID_ARG
    stale.close()
    with context.open(max_tokens=8, context_size=256) as other:
        assert other.handle != handle


def test_a_context_ends_its_streams(backend):
    context = abi.Context(backend.bundle("noise"))
    streams = [context.open(max_tokens=8, context_size=256)]
    streams[0].prefill(context.tokenize(PROMPT))
    streams[0].next(tokens_cap=1)
    context.close()
    with refused(abi.INVALID_ARG, "closed"):
        streams[0].next()
    streams[0].close()


def test_two_streams_take_turns(context):
    """Both at once, or a clear refusal of the second."""
    expected = {prompt: answer(context, prompt) for prompt in (PROMPT, "another one")}
    with context.open(max_tokens=24, context_size=256) as first:
        try:
            second = context.open(max_tokens=24, context_size=256)
        except abi.Error as error:
            assert "busy" in error.message.lower()
            return
        with second:
            first.prefill(context.tokenize(PROMPT))
            second.prefill(context.tokenize("another one"))
            texts = {PROMPT: ([], ""), "another one": ([], "")}
            ended = {PROMPT: False, "another one": False}
            while not all(ended.values()):
                for prompt, stream in ((PROMPT, first), ("another one", second)):
                    step = stream.next(tokens_cap=1)
                    tokens, text = texts[prompt]
                    texts[prompt] = (tokens + step.tokens, text + step.text)
                    ended[prompt] = step.ended
            assert texts == expected


def test_streams_on_threads(context):
    prompts = [PROMPT, "another one", "and a third"]
    expected = {prompt: answer(context, prompt) for prompt in prompts}
    outcomes: dict[str, list] = {prompt: [] for prompt in prompts}

    def work(prompt: str) -> None:
        for _ in range(3):
            try:
                outcomes[prompt].append(answer(context, prompt))
            except abi.Error as error:
                outcomes[prompt].append("busy" if "busy" in error.message.lower() else error)

    threads = [threading.Thread(target=work, args=(prompt,)) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for prompt in prompts:
        assert all(outcome in ("busy", expected[prompt]) for outcome in outcomes[prompt]), outcomes[prompt]
    assert any(outcome != "busy" for prompt in prompts for outcome in outcomes[prompt])


def _generate(stream: abi.Stream, prompt: list[int], started: threading.Event, outcomes: list[BaseException]) -> None:
    """Generates until something ends it."""
    try:
        while True:
            stream.reset()
            stream.prefill(prompt)
            started.set()
            stream.generate(tokens_cap=1)
    except BaseException as error:
        outcomes.append(error)
    finally:
        started.set()


@pytest.mark.parametrize("closes", ["stream", "context"])
def test_closing_while_another_thread_generates(backend, closes):
    """The call inside is cancelled and waited for; what comes later finds the handle closed."""
    for _ in range(5):
        context = abi.Context(backend.bundle("noise"))
        stream = context.open(context_size=2048)
        started = threading.Event()
        outcomes: list[BaseException] = []
        same = abi.Stream(context.library, stream.handle)
        thread = threading.Thread(target=_generate, args=(same, context.tokenize(PROMPT), started, outcomes))
        thread.start()
        started.wait()
        if closes == "stream":
            stream.close()
        context.close()
        thread.join()
        (outcome,) = outcomes
        # A reset that finds the handle closed fails the assertion in abi.Stream.reset.
        assert isinstance(outcome, AssertionError) or (
            isinstance(outcome, abi.Error) and outcome.status in (abi.CANCELLED, abi.INVALID_ARG)
        ), outcome


def test_nothing_is_left_when_all_is_closed(backend):
    """Neither by a close nor by the end of a context, nor by an open that fails."""
    assert abi.live() == abi.NOTHING_LIVE
    context = abi.Context(backend.bundle("noise"))
    stream = context.open(max_tokens=4, context_size=256)
    stream.prefill(context.tokenize(PROMPT))
    assert abi.live() == {"contexts": 1, "streams": 1, "models": 1}
    with pytest.raises(abi.Error):
        context.open(max_tokens=-1)
    stream.generate()
    stream.close()
    assert abi.live()["streams"] == 0
    left_open = context.open(max_tokens=4, context_size=256)
    assert left_open.handle
    context.close()
    assert abi.live() == abi.NOTHING_LIVE


def test_opening_and_closing_keeps_nothing(backend):
    """What is lost each time would show: a context of 256 tokens alone has half a megabyte."""
    if not memory.MEASURABLE:
        return
    prompt = None

    def cycle() -> None:
        nonlocal prompt
        with abi.Context(backend.bundle("noise")) as context:
            prompt = prompt or context.tokenize(PROMPT)
            with context.open(max_tokens=4, context_size=256) as stream:
                stream.prefill(prompt)
                stream.generate()

    flat = 60 * 16 * 1024
    batches = memory.growths(cycle, 60, flat, warm_up=30)
    assert batches[-1] < flat, batches


def test_statistics_of_no_one(context):
    out = c_void_p()
    with refused(abi.INVALID_ARG):
        context.library.call("llm_stream_stats", None, byref(out))
    assert out.value is None
    with context.open(max_tokens=4, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        assert run(stream)[0]
