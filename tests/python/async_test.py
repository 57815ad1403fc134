"""The asyncio twins: the same answers, with the loop free meanwhile, and nothing left behind by a cancelled task."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest

from tests.ffi.fake import Fake
from tests.support.waiting import LIMIT_S, eventually, until_idle


@pytest.fixture(scope="module")
def fake():
    fake = Fake()
    os.environ["ELIZA_INFERENCE_LIBRARY"] = str(fake.library.path)
    return fake


@pytest.fixture
def engine(fake, tmp_path):
    import elizainference as eliza

    fake.script()
    with eliza.Engine(tmp_path, raw=True, max_tokens=20) as engine:
        yield engine
    assert fake.live_sessions() == 0


def worker_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("eliza-async")]


def no_threads_are_left() -> bool:
    """They end on their own, soon."""
    return eventually(lambda: not worker_threads())


class Blocking:
    """A `prefill` that lasts until it is cancelled."""

    def __init__(self, fake: Fake) -> None:
        self.began, self.cancelled = threading.Event(), threading.Event()
        fake.script(prefill=self._prefill, cancel=self._cancel)

    def _prefill(self, session, *arguments) -> int:
        self.began.set()
        return -7 if self.cancelled.wait(LIMIT_S) else -4

    def _cancel(self, session) -> int:
        self.cancelled.set()
        return 0


def test_the_same_answer(engine):
    async def main():
        chunks = [chunk async for chunk in engine.astream([97])]
        return chunks, await engine.agenerate([97])

    chunks, whole = asyncio.run(main())
    assert "".join(chunk.text for chunk in chunks) == whole.text == engine.generate([97]).text == "a" * 20
    assert whole.stats.generated_tokens == 20
    assert no_threads_are_left()


def test_it_is_pulled(fake, engine):
    calls = []

    async def main():
        async with engine.astream([97], max_tokens=0) as stream:
            await anext(stream)
            fake.script(next=lambda *arguments: calls.append(1) or -4)
            await asyncio.to_thread(until_idle)  # not on this thread: the loop has to run meanwhile
            assert calls == []
            fake.script()
            assert stream.stats.stop_reason == ""

    asyncio.run(main())


def test_streams_side_by_side(engine):
    async def main():
        return await asyncio.gather(*(engine.agenerate([97], max_tokens=count) for count in range(1, 40)))

    # More of them than the loop's own executor has threads.
    assert [len(answer.tokens) for answer in asyncio.run(main())] == list(range(1, 40))
    assert no_threads_are_left()


@pytest.mark.parametrize("how", ["astream", "agenerate"])
def test_cancelling_the_task_cancels_the_generation(fake, engine, how):
    blocking = Blocking(fake)

    async def generate():
        if how == "agenerate":
            return await engine.agenerate([97])
        return [chunk async for chunk in engine.astream([97])]

    async def main():
        task = asyncio.create_task(generate())
        await asyncio.to_thread(blocking.began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert blocking.cancelled.is_set()
    assert no_threads_are_left()


def test_timeout(fake, engine):
    async def main(limit_s: float) -> None:
        await asyncio.wait_for(engine.agenerate([97]), limit_s)

    for limit_s in (0.01, 0.1, 1, 10):
        blocking = Blocking(fake)
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(main(limit_s))
        assert no_threads_are_left()
        # Unless the time was up before the model was asked.
        if blocking.began.is_set():
            break
    assert blocking.began.is_set() and blocking.cancelled.is_set()


def test_timeout_of_a_block(fake, engine):
    async def main():
        texts = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as block:
                async for chunk in engine.astream([97], max_tokens=0):
                    texts.append(chunk.text)
                    if len(texts) == 3:
                        block.reschedule(asyncio.get_running_loop().time())
        return texts

    if not hasattr(asyncio, "timeout"):
        pytest.skip("asyncio.timeout came with Python 3.11")
    assert len(asyncio.run(main())) >= 3
    assert eventually(lambda: fake.live_sessions() == 0)
    assert no_threads_are_left()


def test_cancelling_while_the_model_is_loaded(fake, engine):
    opening, go_on = threading.Event(), threading.Event()

    def open(*arguments) -> int:
        opening.set()
        go_on.wait(LIMIT_S)
        return 1

    fake.script(open=open)

    async def main():
        task = asyncio.create_task(engine.agenerate([97], max_tokens=0))
        await asyncio.to_thread(opening.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task  # at once: nobody waits for the model
        go_on.set()

    asyncio.run(main())
    assert no_threads_are_left()


def test_cancel_of_the_stream(fake, engine):
    import elizainference as eliza

    blocking = Blocking(fake)

    async def main():
        stream = engine.astream([97])
        asyncio.get_running_loop().run_in_executor(None, lambda: (blocking.began.wait(), stream.cancel()))
        with pytest.raises(eliza.Cancelled):
            await anext(stream)
        assert stream.stats.stop_reason == "cancelled"

    asyncio.run(main())
    assert no_threads_are_left()


def test_errors_are_those_of_the_twin(engine):
    import elizainference as eliza

    async def main():
        with pytest.raises(eliza.InvalidArgument, match="max_token"):
            await engine.agenerate([97], max_token=5)
        chat = engine.achat()
        with pytest.raises(eliza.InvalidArgument, match="chat template"):
            await chat.generate("hello")
        await chat.aclose()

    asyncio.run(main())
    assert no_threads_are_left()


def test_one_that_is_left(engine):
    async def main():
        async for _ in engine.astream([97], max_tokens=0):
            break

    asyncio.run(main())

    def nobody_is_left() -> bool:
        gc.collect()
        return not worker_threads()

    # Not at once: a thread that has just made a call still has a hand on it.
    assert eventually(nobody_is_left), worker_threads()
