"""Stream, one generation in progress, and what it returns."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, NamedTuple

from elizainference import _native
from elizainference._arguments import path_bytes
from elizainference._errors import Cancelled, ElizaError, InvalidArgument
from elizainference._stop import StopStrings

if TYPE_CHECKING:
    from typing_extensions import Self


class Chunk(NamedTuple):
    """What one step of a generation brought.

    Both text and tokens are whole: their concatenation over a stream is the answer. Text may lag behind tokens, since a
    character can take several of them.
    """

    text: str
    tokens: tuple[int, ...]
    drafted: int
    """Tokens that the drafter proposed in this step; 0 without one."""
    accepted: int
    """How many of them the model took."""


@dataclass(frozen=True)
class Stats:
    """What a stream tells about itself. See docs/abi.md for where the figures are taken."""

    backend: str = ""
    device: str = ""
    stop_reason: str = ""
    """"end_of_generation", "max_tokens", "context_full", "stop_string", "cancelled", "error"; "" while it runs."""
    prompt_tokens: int = 0
    reused_tokens: int = 0
    """How many of them were in the KV cache already, from an earlier turn or stream, and were not read again."""
    generated_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    kv_used: int = 0
    """Tokens in the KV cache, and how many it can hold."""
    kv_capacity: int = 0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    ignored_options: list[str] = field(default_factory=list)
    """Options that tune the answer and that this backend does not have."""


@dataclass
class Timings:
    """Where the time of a generation went, in seconds."""

    open: float = 0.0
    """Until the stream was open: loading the model, where no other stream had it."""
    prefill: float = 0.0
    """Reading the prompt."""
    first_token: float = 0.0
    """From the start of the prefill to the first token."""
    decode: float = 0.0
    """All tokens after the first."""
    decoded_tokens: int = 0
    """How many those were."""

    @property
    def tokens_per_second(self) -> float:
        """Speed of decoding; 0 where there was no second token."""
        return self.decoded_tokens / self.decode if self.decode > 0 else 0.0


@dataclass(frozen=True)
class Completion:
    """A whole answer. `str()` of it is its text."""

    text: str
    tokens: tuple[int, ...]
    stats: Stats
    timings: Timings

    @property
    def stop_reason(self) -> str:
        """Why it ended: "end_of_generation", "max_tokens", "context_full" or "stop_string"."""
        return self.stats.stop_reason

    @property
    def backend(self) -> str:
        """The backend that answered, such as "llama.cpp"."""
        return self.stats.backend

    @property
    def device(self) -> str:
        """What it ran on, such as "cpu"."""
        return self.stats.device

    def __str__(self) -> str:
        return self.text


class Stream(Iterator[Chunk]):
    """A generation in progress: an iterator of `Chunk`.

    Ends at the end of the text; or with `Cancelled` after a `cancel`. One that is not read to its end holds its part of
    the memory until it is closed: leave it with `close`, or use a `with` statement.
    """

    def __init__(self, native: _native.Stream, prompt: list[int], stop: Sequence[str], opened_in: float) -> None:
        self._native = native
        self._prompt = prompt
        self._stop = StopStrings(stop)
        self._timings = Timings(open=opened_in)
        self._started = 0.0
        # Of threads that read the same stream, one at a time: they share the stop strings and the clock.
        self._reading = threading.RLock()
        self._final: Stats | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        with self._reading:
            return self._next()

    def cancel(self) -> None:
        """Ends the generation, from any thread: a `next` in progress raises `Cancelled` within one step."""
        self._native.cancel()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves what the model has read and written so far, its KV cache, to a file. Reads the prompt if need be.

        The file belongs to this model, and to these types of the KV cache. It appears at once, or not at all.

        Raises:
          InvalidArgument: the stream has ended; a `Chat` can be saved after its answers.
          ElizaError: the file cannot be written.
        """
        with self._reading:
            self._check_running("save one before its end")
            if not self._started:
                self._prefill()
            self._native.save_slot(path_bytes(path, "the path"))

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Puts what `save` wrote before the prompt, in place of reading it. Only before the first `next`.

        The prompt then goes on where the saved text ended, so it should not begin like a text of its own; give it as
        tokens: `engine.stream(engine.tokenize(" and then", add_special=False))`.

        Raises:
          InvalidArgument: the stream is past its beginning; or the file is damaged, or another model's. The stream then
            is as it was.
        """
        with self._reading:
            self._check_running("restore into a new one")
            if self._started:
                raise InvalidArgument("this stream has read its prompt; restore before the first next")
            self._native.restore_slot(path_bytes(path, "the path"))

    def close(self) -> None:
        """Ends the stream and frees its memory. Closing twice is fine."""
        if self._final is None:
            # First, so that nobody waits for what another thread is in.
            self._native.cancel()
            self._end("cancelled")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def stats(self) -> Stats:
        """The figures so far, or those of the end."""
        return self._final or self._read_stats()

    @property
    def timings(self) -> Timings:
        """Where the time went so far."""
        return self._timings

    def __repr__(self) -> str:
        state = self._final.stop_reason if self._final else "open"
        return f"<Stream {state}, {len(self._prompt)} prompt tokens>"

    def _next(self) -> Chunk:
        if self._final is not None:
            raise StopIteration
        try:
            if not self._started:
                self._prefill()
            while True:
                before = time.perf_counter()
                done, text, tokens, drafted, accepted = self._native.next()
                if tokens:
                    self._count(before, len(tokens))
                text = self._stop.push(text)
                if done and not self._stop.found:
                    text += self._stop.flush()
                self._received(text, tokens)
                if self._stop.found:
                    self._end("stop_string")
                elif done:
                    self._end()
                if text or tokens:
                    return Chunk(text, tokens, drafted, accepted)
                if self._final is not None:
                    raise StopIteration
        except StopIteration:
            raise
        except BaseException as error:
            # Ctrl-C too: nothing goes on behind the caller's back.
            failed = isinstance(error, ElizaError) and not isinstance(error, Cancelled)
            self._end("error" if failed else "cancelled")
            raise

    def _received(self, text: str, tokens: tuple[int, ...]) -> None:
        """Called with each step of the answer, before the stream ends."""

    def _read_stats(self) -> Stats:
        return read_stats(self._native)

    def _release(self) -> None:
        """Called once, when the generation has ended."""
        self._native.close()

    def _check_running(self, advice: str) -> None:
        if self._final is not None:
            raise InvalidArgument(f"this stream has ended; {advice}")

    def _prefill(self) -> None:
        self._started = time.perf_counter()
        interruptible(lambda: self._native.prefill(self._prompt), self._native.cancel)
        self._timings.prefill = time.perf_counter() - self._started

    def _count(self, before: float, tokens: int) -> None:
        now = time.perf_counter()
        if self._timings.first_token:
            self._timings.decode += now - before
            self._timings.decoded_tokens += tokens
        else:
            self._timings.first_token = now - self._started

    def _end(self, reason: str | None = None) -> None:
        if self._final is not None:
            return
        try:
            final = self._read_stats()
        except ElizaError:  # the engine was closed
            final = Stats()
        self._final = final if reason is None else replace(final, stop_reason=reason)
        self._release()


def collect(stream: Stream) -> Completion:
    """Reads a stream to its end."""
    text: list[str] = []
    tokens: list[int] = []
    with stream:
        for chunk in stream:
            text.append(chunk.text)
            tokens.extend(chunk.tokens)
    return Completion("".join(text), tuple(tokens), stream.stats, stream.timings)


def read_stats(native: _native.Stream) -> Stats:
    """The figures of a stream of the C ABI."""
    figures = json.loads(native.stats())
    return Stats(**{f.name: figures[f.name] for f in fields(Stats) if f.name in figures})


def interruptible(call: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Makes a long call that Ctrl-C cancels.

    Python handles signals in its main thread, and only while that runs Python code. So there the call gets a thread of
    its own, and the main thread waits where a signal can reach it.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="eliza-prefill")
    try:
        thread.start()
        thread.join()
    except BaseException:
        # A cancel sticks, so it does not matter how far the thread has come.
        cancel()
        if thread.is_alive():
            thread.join()
        raise
    if errors:
        raise errors[0]
