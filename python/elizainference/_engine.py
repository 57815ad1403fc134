"""Engine, and what it returns."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from elizainference import _library, _native, _options
from elizainference._chat import ChatTemplate, Message, chat_template, metadata, utf8
from elizainference._errors import BackendUnavailable, BundleError, Cancelled, ElizaError, InvalidArgument
from elizainference._options import Options
from elizainference._stop import StopStrings

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


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


@dataclass(frozen=True)
class Backend:
    """A backend in the selection for a bundle. None means that it was not asked."""

    name: str
    compiled: bool
    """In this build of the library."""
    available: bool | None
    """What it depends on is there on this host."""
    can_serve: bool | None
    """The bundle holds a model in its format."""
    rank: int | None
    """The highest wins; llama.cpp is 0."""
    chosen: bool
    reason: str
    """Why it is chosen, or not."""


class Engine:
    """A bundle, opened for generation.

    Can be used from several threads at once; each stream is a conversation of its own with the model, which is in
    memory once. Close it, or use it in a `with` statement, to give the memory back at a known time.

    Args:
      bundle: directory with the model files (docs/bundle.md).
      **options: defaults for every generation; see `Options`.

    Raises:
      BundleError: the bundle is missing, or not one.
      InvalidArgument: there is no such option, or it cannot have this value.

    >>> engine = Engine(bundle, max_tokens=16)
    >>> print(engine.generate("Name the capital of France."))
    The capital of France is Paris.
    >>> engine.close()
    """

    def __init__(self, bundle: str | os.PathLike[str], **options: Unpack[Options]) -> None:
        self._options = _options.merge(_options.DEFAULTS, options)
        self._bundle = os.fspath(bundle)
        path = os.fsencode(self._bundle)
        if b"\0" in path:
            raise BundleError(f"the bundle path {self._bundle!r} holds a NUL; give the path of a directory")
        _library.load()
        self._context = _native.Context(path)
        self._closed = False
        self._template: ChatTemplate | None = None
        self._template_read = False
        self._last: Stats | None = None

    @property
    def bundle(self) -> str:
        """The path it was opened with."""
        return self._bundle

    def stream(self, prompt: str | Sequence[Message] | Sequence[int], **options: Unpack[Options]) -> Stream:
        """Generates an answer piece by piece.

        Opens the stream, and so loads the model if it is not yet; the prompt is read at the first `next`.

        Args:
          prompt: what a user says; or a chat, as a list of `{"role": "user", "content": "…"}`; or token ids. A string
            is put into the model's chat template as the one message of a user, unless the model has none or `raw=True`.
          **options: see `Options`.

        Raises:
          InvalidArgument: an option or a message is wrong.
          BackendUnavailable: ELIZA_LLM_BACKEND asks for a backend that cannot serve.
          BundleError: the model file is damaged, missing or ambiguous.

        >>> with engine.stream("Name the capital of France.") as stream:
        ...     for chunk in stream:
        ...         print(chunk.text, end="", flush=True)
        The capital of France is Paris.
        """
        merged = _options.merge(self._options, options)
        started = time.perf_counter()
        # Before the model is loaded: a prompt that cannot be is known at once, and so is a model that cannot be read.
        tokens = self._prompt_tokens(prompt, merged)
        if not tokens:
            raise InvalidArgument("the prompt is empty; give at least one token")
        try:
            native = self._context.open(**_options.stream_config(merged))
        except ElizaError as error:
            raise self._open_error(error) from None
        try:
            # Greedy decoding draws nothing, and a backend without seeds can do it too.
            if merged["seed"] is not None and merged["temperature"] > 0:
                native.set_seed(merged["seed"])
            self._last = _stats(native)
        except BaseException:
            native.close()
            raise
        return Stream(native, tokens, merged["stop"], opened_in=time.perf_counter() - started)

    def generate(self, prompt: str | Sequence[Message] | Sequence[int], **options: Unpack[Options]) -> Completion:
        """Generates a whole answer. Arguments and errors are those of `stream`.

        >>> engine.generate("Name the capital of France.", max_tokens=3).stop_reason
        'max_tokens'
        """
        with self.stream(prompt, **options) as stream:
            text: list[str] = []
            tokens: list[int] = []
            for chunk in stream:
                text.append(chunk.text)
                tokens.extend(chunk.tokens)
        return Completion("".join(text), tuple(tokens), stream.stats, stream.timings)

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of a text.

        Args:
          text: may be empty.
          add_special: add what the model expects around a text, such as BOS.
          parse_special: read "<|im_start|>" and the like as special tokens. Not for text from users.

        >>> engine.tokenize("Hello world", add_special=False)
        [19556, 905]
        """
        return self._context.tokenize(utf8(text, "the text"), add_special, parse_special)

    def detokenize(self, tokens: Sequence[int], *, remove_special: bool = False, unparse_special: bool = False) -> str:
        """Text of token ids. Bytes that form no character become U+FFFD.

        Args:
          tokens: ids of the model's vocabulary.
          remove_special: leave out what `add_special` of `tokenize` adds.
          unparse_special: show special tokens, such as "<|im_start|>".

        >>> engine.detokenize([19556, 905])
        'Hello world'
        """
        return self._context.detokenize(_token_ids(tokens), remove_special, unparse_special)

    def metadata(self, key: str) -> str | None:
        """A value of the model's metadata; None for a key it has not.

        >>> engine.metadata("general.architecture")
        'llama'
        """
        self._check_open()
        return metadata(self._context, key)

    def backends(self) -> list[Backend]:
        """Every backend this library knows: whether it can serve the bundle here, and which one is chosen and why.

        >>> [backend.name for backend in engine.backends() if backend.chosen]
        ['llama.cpp']
        """
        names = [f.name for f in fields(Backend)]
        return [Backend(**{name: row[name] for name in names}) for row in self.backend_report()["backends"]]

    def backend_report(self) -> dict[str, Any]:
        """The selection as the library reports it: "env", "bundle", "chosen", "error" and "backends"
        (docs/backends.md)."""
        report: dict[str, Any] = json.loads(self._context.backend_report())
        return report

    def close(self) -> None:
        """Ends the engine and its streams: reading on from one of those raises. Closing twice is fine."""
        self._closed = True
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # Backend and device are those of the last stream: asking anew could wake a GPU.
        last = f", backend={self._last.backend!r}, device={self._last.device!r}" if self._last else ""
        return f"<Engine bundle={self._bundle!r}{last}{', closed' if self._closed else ''}>"

    def _prompt_tokens(self, prompt: str | Sequence[Message] | Sequence[int], options: Options) -> list[int]:
        if isinstance(prompt, str):
            template = None if options["raw"] else self._chat_template()
            if template is None:
                # Whoever writes a raw prompt writes the special tokens too.
                return self._context.tokenize(utf8(prompt, "the prompt"), True, True)
            prompt = [{"role": "user", "content": prompt}]
        elif not isinstance(prompt, Sequence) or isinstance(prompt, (bytes, bytearray)):
            raise InvalidArgument(f"the prompt is a {type(prompt).__name__}; give a string, messages or token ids")
        elif len(prompt) > 0 and not hasattr(prompt[0], "get"):
            return _token_ids(prompt)  # type: ignore[arg-type]
        else:
            template = self._chat_template()
            if template is None:
                raise InvalidArgument("this model has no chat template, so it takes no messages; give a string")
        return template.tokens(prompt, options["disable_thinking"])  # type: ignore[arg-type]

    def _chat_template(self) -> ChatTemplate | None:
        self._check_open()
        if not self._template_read:
            self._template = chat_template(self._context)
            self._template_read = True
        return self._template

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("this engine is closed; open another one")

    def _open_error(self, error: ElizaError) -> ElizaError:
        """The library's open says no more than a message; the report knows whether selecting a backend failed."""
        try:
            unavailable = self.backend_report()["error"] == str(error)
        except ElizaError:
            unavailable = False
        return BackendUnavailable(str(error), error.status) if unavailable else error


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
        self._turn = threading.Lock()
        self._final: Stats | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        with self._turn:
            return self._next()

    def cancel(self) -> None:
        """Ends the generation, from any thread: a `next` in progress raises `Cancelled` within one step."""
        self._native.cancel()

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
        return self._final or _stats(self._native)

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
                if self._stop.found:
                    self._end("stop_string")
                elif done:
                    text += self._stop.flush()
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

    def _prefill(self) -> None:
        self._started = time.perf_counter()
        _interruptible(lambda: self._native.prefill(self._prompt), self._native.cancel)
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
            self._final = _stats(self._native, reason)
        except ElizaError:  # the engine was closed
            self._final = Stats(stop_reason=reason or "")
        self._native.close()


def _stats(native: _native.Stream, stop_reason: str | None = None) -> Stats:
    figures = json.loads(native.stats())
    known = {f.name: figures[f.name] for f in fields(Stats) if f.name in figures}
    if stop_reason is not None:
        known["stop_reason"] = stop_reason
    return Stats(**known)


def _token_ids(tokens: Sequence[int]) -> list[int]:
    try:
        ids = [int(token) for token in tokens]
    except (TypeError, ValueError):
        raise InvalidArgument("token ids must be whole numbers") from None
    if any(not 0 <= token < 2**31 for token in ids):
        raise InvalidArgument(f"token ids must be from 0 to {2**31 - 1}")
    return ids


def _interruptible(call: Callable[[], None], cancel: Callable[[], None]) -> None:
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
