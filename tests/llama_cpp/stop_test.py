"""destroy ends what is at work on its context, instead of waiting for it: embeddings, scores, models being loaded."""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_float, c_int, c_int32

import pytest

from tests.llama_cpp import recall
from tests.support import abi

TOKENS = 4000  # work for a while, even on a model this small


def embed(library: abi.Library, handle: int, _: int) -> None:
    text = b"xyz" * (TOKENS // 3)
    out, dimension = (c_float * 4096)(), c_int()
    library.call("embed", handle, text, len(text), 1, out, len(out), byref(dimension))


def eot_score(library: abi.Library, handle: int, times: int) -> None:
    # A prompt whose first token is another one each time: nothing of it is decoded yet.
    tokens = (c_int32 * TOKENS)(*[300 + times % 50] * TOKENS)
    probability, top, top_probability = c_float(), c_int32(), c_float()
    library.call("llm_eot_score", handle, tokens, TOKENS, 5, byref(probability), byref(top), byref(top_probability))


def status_when_destroyed(call, delay_s: float) -> int:
    """The status of the call, one of many in a row, that a destroy ends."""
    library = abi.load()
    handle = library.call("create", str(recall.bundle("llama")).encode())
    call(library, handle, 0)  # the model is loaded from here on
    started = threading.Event()

    def work() -> int:
        times = 0
        while True:
            times += 1
            started.set()
            try:
                call(library, handle, times)
            except abi.Error as error:
                return error.status

    with ThreadPoolExecutor(1) as pool:
        status = pool.submit(work)
        started.wait()
        threading.Event().wait(delay_s)
        library.destroy(handle)
        return status.result()


@pytest.mark.parametrize("call", [embed, eot_score])
def test_destroy_ends_a_call_at_work(call):
    # A call that was waited for would have succeeded, and the next one found the context closed. Between two calls
    # that is what happens, so not every attempt shows anything.
    statuses = []
    while abi.CANCELLED not in statuses:
        assert len(statuses) < 50, statuses
        statuses.append(status_when_destroyed(call, 0.003 * len(statuses)))
    assert set(statuses) <= {abi.CANCELLED, abi.INVALID_ARG}


@pytest.mark.parametrize("call", [embed, eot_score])
def test_the_next_context_is_not_stopped(call):
    status_when_destroyed(call, 0.01)
    with abi.Context(recall.bundle("llama")) as context:
        call(context.library, context.handle, 1)


def test_destroy_while_a_model_is_loaded(demo_bundle):
    library, config = abi.load(), abi.config(context_size=64)
    for attempt in range(12):
        handle = library.call("create", str(demo_bundle).encode())
        with ThreadPoolExecutor(2) as pool:
            opened = [pool.submit(library.llm_stream_open, handle, byref(config), None) for _ in range(2)]
            threading.Event().wait(0.01 * attempt)
            library.destroy(handle)
            for stream in opened:
                # Either it was lost with its context, or it was there and has been closed with it.
                tokens = ctypes.c_int32(5)
                assert library.llm_stream_prefill(stream.result(), byref(tokens), 1, None) == abi.INVALID_ARG
    with abi.Context(demo_bundle) as context, context.open(max_tokens=1, context_size=64) as stream:
        stream.prefill(context.tokenize("The capital of France is"))
        assert stream.generate() == " Paris"
