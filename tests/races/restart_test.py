"""All is closed, and all begins again, in one process: nothing is left of the round before.

A target of its own, so that the first round is the first use of the library in its process.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.support import abi, models
from tests.support.waiting import eventually, threads_of

BUNDLE = models.bundle("tiny_llama_cycle")
ROUNDS = 30


def _generate(context: abi.Context, count: int) -> None:
    streams = [context.open(max_tokens=8, context_size=64) for _ in range(count)]
    for stream in streams:
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == models.alphabet("abc", 8)
    for stream in streams:
        stream.close()


def _left_behind() -> dict[str, object]:
    maps = Path("/proc/self/maps").read_text()
    descriptors = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    return {
        "models mapped": maps.count(".gguf"),
        "models open": sum(".gguf" in path for path in descriptors),
        "descriptors": len(descriptors),
        "threads": threads_of(),
    }


def _start_a_thread() -> None:
    """With the first one TSan starts one of its own, which stays."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert eventually(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())


def test_nothing_is_left_when_all_is_closed():
    _start_a_thread()
    before = _left_behind()
    assert before["models mapped"] == 0
    for _ in range(ROUNDS):
        contexts = [abi.Context(BUNDLE) for _ in range(3)]
        threads = [threading.Thread(target=_generate, args=(context, 2)) for context in contexts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for context in contexts:
            context.close()
        assert abi.live() == abi.NOTHING_LIVE
        # A thread that was joined has yet to leave the kernel's list.
        eventually(lambda: _left_behind()["threads"] <= before["threads"])
        assert _left_behind() == before


def test_handles_of_an_earlier_round_stay_closed():
    with abi.Context(BUNDLE) as context:
        stale = context.open(context_size=64)
        handle = stale.handle
        stale.close()
    with abi.Context(BUNDLE) as context, context.open(context_size=64) as stream:
        assert stream.handle != handle
        assert context.library.llm_stream_cancel(handle) == abi.INVALID_ARG


def test_what_is_used_is_counted():
    """The counts above count something."""
    with abi.Context(BUNDLE) as context, context.open(context_size=64), context.open(context_size=64):
        assert _left_behind()["models mapped"] > 0
        assert abi.live() == {"contexts": 1, "streams": 2, "models": 1}
