"""The asyncio twins: streams and chats whose calls run in a worker thread.

Each has a thread of its own, so that no stream waits for another's model and none takes a thread of the loop's
executor. It pulls one step when one is awaited; between two of them nothing runs. A task that is cancelled while it
awaits cancels the generation, which ends within one step.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from elizainference._chat import Message
from elizainference._errors import Cancelled
from elizainference._session import Chat
from elizainference._stream import Chunk, Completion, Stats, Stream, Timings, collect

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class _Worker:
    """A thread that makes calls, one after the other, for coroutines."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="eliza-async")
        self._closed = False

    async def run(self, call: Callable[[], T], cancel: Callable[[], None]) -> T:
        """What `call` returns. `cancel` is called where the task is cancelled meanwhile."""
        future = asyncio.wrap_future(self._executor.submit(call))
        try:
            # The call goes on to its end in any case: what it leaves has to be closed.
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancel()
            # What becomes of it, nobody waits for any more.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    def end(self, close: Callable[[], None]) -> None:
        """Makes one last call after those in progress, waits for none of them, and lets the thread end."""
        if not self._closed:
            self._closed = True
            self._executor.submit(close)
            self._executor.shutdown(wait=False)

    async def close(self, close: Callable[[], None]) -> None:
        """The same, and waits."""
        if not self._closed:
            self._closed = True
            last = self._executor.submit(close)
            self._executor.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(last))


class AsyncStream(AsyncIterator[Chunk]):
    """A generation in progress, for `async for`: the twin of `Stream`, from `Engine.astream` and `AsyncChat.stream`.

    Opened when it is first awaited. Leave one that is not read to its end with `aclose`, or use `async with`.
    """

    def __init__(self, open: Callable[[], Stream], worker: _Worker | None = None) -> None:
        self._open = open
        self._worker = worker or _Worker()
        self._owns_worker = worker is None
        self._stream: Stream | None = None
        self._cancelled = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        chunk = await self._run(self._next)
        if chunk is None:
            await self.aclose()
            raise StopAsyncIteration
        return chunk

    async def collect(self) -> Completion:
        """Reads it to its end, and returns the whole answer."""
        try:
            return await self._run(lambda: collect(self._opened()))
        finally:
            if self._owns_worker:
                self._worker.end(self._close)

    def cancel(self) -> None:
        """Ends the generation, from any thread or task: an `await` in progress raises `Cancelled` within one step."""
        self._cancelled = True
        if self._stream is not None:
            self._stream.cancel()

    async def aclose(self) -> None:
        """Ends the stream and frees its memory. Closing twice is fine."""
        self.cancel()
        if self._owns_worker:
            await self._worker.close(self._close)
        elif self._stream is not None:
            await self._worker.run(self._close, self.cancel)

    async def __aenter__(self) -> Self:
        await self._run(self._opened)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    @property
    def stats(self) -> Stats:
        """The figures so far, or those of the end."""
        return self._stream.stats if self._stream else Stats()

    @property
    def timings(self) -> Timings:
        """Where the time went so far."""
        return self._stream.timings if self._stream else Timings()

    def __repr__(self) -> str:
        return f"<AsyncStream of {self._stream!r}>" if self._stream else "<AsyncStream, not opened yet>"

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._worker.run(call, self.cancel)
        except BaseException:
            # The stream has ended; a thread that waits for more would keep the process from ending.
            if self._owns_worker:
                self._worker.end(self._close)
            raise

    # -- In the worker thread --

    def _opened(self) -> Stream:
        if self._stream is None:
            stream = self._open()
            self._stream = stream
            # One that came while the model was loaded.
            if self._cancelled:
                stream.close()
                raise Cancelled("the stream was cancelled before it was open; start another one")
        return self._stream

    def _next(self) -> Chunk | None:
        return next(self._opened(), None)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()


class AsyncChat:
    """A conversation, for coroutines: the twin of `Chat`, from `Engine.achat`. Opened when it is first awaited."""

    def __init__(self, open: Callable[[], Chat], messages: list[Message]) -> None:
        self._open = open
        self._worker = _Worker()
        self._chat: Chat | None = None
        self._first_messages = messages

    @property
    def messages(self) -> list[Message]:
        """What was said; see `Chat.messages`."""
        return self._chat.messages if self._chat else self._first_messages

    def stream(self, message: str | Message) -> AsyncStream:
        """Says something, and brings the answer piece by piece; see `Chat.stream`."""
        return AsyncStream(lambda: self._opened().stream(message), self._worker)

    async def generate(self, message: str | Message) -> Completion:
        """Says something, and returns the whole answer; see `Chat.generate`."""
        return await self.stream(message).collect()

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the conversation and its KV cache; see `Chat.save`."""
        await self._worker.run(lambda: self._opened().save(path), _nothing)

    async def restore(self, path: str | os.PathLike[str]) -> None:
        """Goes on with a saved conversation; see `Chat.restore`."""
        await self._worker.run(lambda: self._opened().restore(path), _nothing)

    async def aclose(self) -> None:
        """Ends the chat and frees its memory. Closing twice is fine."""
        chat = self._chat
        if chat is not None and chat.turn is not None:
            chat.turn.cancel()
        await self._worker.close(self._close)

    async def __aenter__(self) -> Self:
        try:
            await self._worker.run(self._opened, _nothing)
        except BaseException:
            self._worker.end(self._close)
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncChat {len(self.messages)} messages>"

    # -- In the worker thread --

    def _opened(self) -> Chat:
        if self._chat is None:
            self._chat = self._open()
        return self._chat

    def _close(self) -> None:
        if self._chat is not None:
            self._chat.close()


def _nothing() -> None:
    """What cannot be cancelled is waited for by whoever closes."""
