"""Engine: an open bundle, and what can be done with it."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from elizainference import _library, _native, _options
from elizainference._arguments import flag, path_bytes, shown, token_ids, utf8
from elizainference._chat import ChatTemplate, Message, chat_template, metadata, token_id
from elizainference._errors import BackendUnavailable, BundleError, ElizaError, InvalidArgument, from_status
from elizainference._options import Options
from elizainference._session import Chat, message_list
from elizainference._stream import Completion, Stats, Stream, collect, read_stats
from elizainference._types import Backend, EndOfTurn, Vector, VerifierEvent, vector

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from elizainference._async import AsyncChat, AsyncStream


# eliza_inference_embed's `pooling`.
_POOLINGS = {"mean": 1, "cls": 2, "last": 3}


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
        path = path_bytes(bundle, "the bundle path", BundleError)
        if not path:
            raise BundleError("the bundle path is empty; give the path of a directory")
        self._bundle = os.fsdecode(path)
        if os.path.isfile(path):
            raise BundleError(
                f"the bundle {self._bundle!r} is a file, and a bundle is a directory with the model in its text/: "
                f"`eliza bundle create FOLDER --model {shlex.quote(self._bundle)}` makes one"
            )
        _library.load()
        self._context = _native.Context(path)
        self._closed = False
        self._template: ChatTemplate | None = None
        self._template_read = False
        self._last: Stats | None = None
        self._expected: tuple[str, str] | None = None

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
        native = self._open(merged)
        try:
            # Greedy decoding draws nothing, and a backend without seeds can do it too.
            if merged["seed"] is not None and merged["temperature"] > 0:
                native.set_seed(merged["seed"])
        except BaseException:
            native.close()
            raise
        return Stream(native, tokens, merged["stop"] or (), opened_in=time.perf_counter() - started)

    def generate(self, prompt: str | Sequence[Message] | Sequence[int], **options: Unpack[Options]) -> Completion:
        """Generates a whole answer. Arguments and errors are those of `stream`.

        >>> engine.generate("Name the capital of France.", max_tokens=3).stop_reason
        'max_tokens'
        """
        return collect(self.stream(prompt, **options))

    def chat(self, messages: Sequence[Message] = (), **options: Unpack[Options]) -> Chat:
        """Begins a conversation: its history is kept, and what the model has read of it is not read again.

        Args:
          messages: what was said before, such as `[{"role": "system", "content": "…"}]`.
          **options: see `Options`; they hold for every answer. `raw` has no meaning here.

        Raises:
          InvalidArgument: an option is wrong, or the model has no chat template.
          BackendUnavailable, BundleError: as `stream`.

        >>> with engine.chat() as chat:
        ...     print(chat.generate("Name the capital of France."))
        ...     print(chat.generate("And its country?").stats.reused_tokens > 30)
        The capital of France is Paris.
        True
        """
        merged = _options.merge(self._options, options)
        started = time.perf_counter()
        template = self._chat_template()
        if template is None:
            raise InvalidArgument("this model has no chat template, so it cannot chat; use stream or generate")
        native = self._open(merged)
        return Chat(native, template, merged, messages, opened_in=time.perf_counter() - started)

    def astream(self, prompt: str | Sequence[Message] | Sequence[int], **options: Unpack[Options]) -> AsyncStream:
        """The asyncio twin of `stream`: `async for chunk in engine.astream(prompt)`. Same arguments and errors, the
        latter when it is awaited. A task that is cancelled while it awaits a chunk ends the generation."""
        from elizainference._async import AsyncStream

        return AsyncStream(lambda: self.stream(prompt, **options))

    async def agenerate(
        self, prompt: str | Sequence[Message] | Sequence[int], **options: Unpack[Options]
    ) -> Completion:
        """The asyncio twin of `generate`.

        >>> import asyncio
        >>> print(asyncio.run(engine.agenerate("Name the capital of France.")))
        The capital of France is Paris.
        """
        return await self.astream(prompt, **options).collect()

    def achat(self, messages: Sequence[Message] = (), **options: Unpack[Options]) -> AsyncChat:
        """The asyncio twin of `chat`: `async with engine.achat() as chat: await chat.generate("Hello")`."""
        from elizainference._async import AsyncChat

        first = message_list(messages)
        return AsyncChat(lambda: self.chat(first, **options), first)

    def embed(self, text: str, pooling: Literal["mean", "cls", "last"] = "mean") -> Vector:
        """The embedding of a text: a vector of length 1, whose products with others tell how alike the texts are.

        A NumPy array of float32 where NumPy is installed, else a list.

        Args:
          text: may be empty.
          pooling: what becomes of the vectors of the tokens: their mean, that of the first token, or of the last.

        Raises:
          InvalidArgument: `pooling` is none of these, or the text is longer than the model reads.
          NotSupported: there is no llama.cpp to do it.

        >>> len(engine.embed("Hello world"))
        576
        """
        if not isinstance(pooling, str) or pooling not in _POOLINGS:
            raise InvalidArgument(f"pooling is {shown(pooling)}; it must be one of {', '.join(_POOLINGS)}")
        return vector(self._context.embed(utf8(text, "the text"), _POOLINGS[pooling]))

    def eot_score(self, tokens: Sequence[int], target: int | None = None) -> EndOfTurn:
        """How likely the next token is the one that ends a turn: whether somebody who speaks is done.

        Args:
          tokens: the text so far, such as `engine.tokenize("<|im_start|>user\\nHow are", parse_special=True)`.
          target: the token that ends a turn. None: the model's own.

        Raises:
          InvalidArgument: no tokens, or one that the model has not; or the model names no token that ends a turn.
          NotSupported: there is no llama.cpp to do it.

        >>> asked = engine.eot_score(engine.tokenize("<|im_start|>user\\nHow are you?", parse_special=True))
        >>> asking = engine.eot_score(engine.tokenize("<|im_start|>user\\nHow are", parse_special=True))
        >>> asked.probability > asking.probability
        True
        """
        if target is None:
            target = next((id for name in ("eot", "eos") if (id := token_id(self._context, name)) is not None), None)
        if target is None:
            raise InvalidArgument("the model names no token that ends a turn; give one as target")
        return EndOfTurn(*self._context.eot_score(token_ids(tokens), *token_ids([target])))

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of a text.

        Args:
          text: may be empty.
          add_special: add what the model expects around a text, such as BOS.
          parse_special: read "<|im_start|>" and the like as special tokens. Not for text from users.

        >>> engine.tokenize("Hello world", add_special=False)
        [19556, 905]
        """
        flag(add_special, "add_special"), flag(parse_special, "parse_special")
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
        flag(remove_special, "remove_special"), flag(unparse_special, "unparse_special")
        return self._context.detokenize(token_ids(tokens), remove_special, unparse_special)

    def metadata(self, key: str) -> str | None:
        """A value of the model's metadata; None for a key it has not.

        >>> engine.metadata("general.architecture")
        'llama'
        """
        self._check_open()
        utf8(key, "the key")
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

    def set_verifier_callback(self, callback: Callable[[VerifierEvent], object] | None) -> None:
        """Calls `callback` once per step of speculative decoding, of any stream, in the thread that reads it.

        An exception that it raises comes out of that stream's `next`, and ends the stream. None: no more calls.

        Raises:
          NotSupported: this library does not draft.
        """
        if callback is not None and not callable(callback):
            raise InvalidArgument(f"the callback is {shown(callback)}; it must be a function, or None")
        self._context.set_verifier_callback(
            None if callback is None else lambda *event: callback(VerifierEvent(*event))
        )

    def close(self) -> None:
        """Ends the engine and its streams: reading on from one of those raises. Closing twice is fine."""
        self._closed = True
        self._context.close()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"<Engine bundle={self._bundle!r}"
        if self._last:
            where += f", backend={self._last.backend!r}, device={self._last.device!r}"
        elif not self._closed:
            where += self._expectation()
        return f"{where}{', closed' if self._closed else ''}>"

    def _expectation(self) -> str:
        """Who would answer, and on what, for `repr`: as the report has it.

        Asked once as long as ELIZA_LLM_BACKEND stays what it is: in a build for GPUs the report wakes them.
        """
        wish = os.environ.get("ELIZA_LLM_BACKEND", "")
        if self._expected is None or self._expected[0] != wish:
            try:
                self._expected = wish, self._expected_backend()
            except ElizaError:  # closed meanwhile
                return ""
        return self._expected[1]

    def _expected_backend(self) -> str:
        report = self.backend_report()
        chosen = report["chosen"]
        if chosen != "llama.cpp":
            # What the others run on shows when they are open.
            return f", backend={chosen!r}"
        device = ", ".join(report["gpu"]["devices"] if self._options["n_gpu_layers"] else []) or "cpu"
        return f", backend={chosen!r}, device={device!r}"

    def _open(self, options: Options) -> _native.Stream:
        config = _options.stream_config(options)
        try:
            native = self._context.open(**config)
        except ElizaError as error:
            raise self._open_error(error, options) from None
        self._last = read_stats(native)
        return native

    def _prompt_tokens(self, prompt: str | Iterable[Message] | Iterable[int], options: Options) -> list[int]:
        if isinstance(prompt, str):
            template = None if options["raw"] else self._chat_template()
            if template is None:
                # Whoever writes a raw prompt writes the special tokens too.
                return self._context.tokenize(utf8(prompt, "the prompt"), True, True)
            return template.tokens([{"role": "user", "content": prompt}], options["disable_thinking"])
        if isinstance(prompt, (bytes, bytearray, Mapping)) or not isinstance(prompt, Iterable):
            raise InvalidArgument(
                f"the prompt is a {type(prompt).__name__}; give a string, a list of messages or token ids"
            )
        items: list[Any] = list(prompt)
        if items and not isinstance(items[0], Mapping):
            return token_ids(items)
        template = self._chat_template()
        if template is None:
            raise InvalidArgument("this model has no chat template, so it takes no messages; give a string")
        return template.tokens(items, options["disable_thinking"])

    def _chat_template(self) -> ChatTemplate | None:
        self._check_open()
        if not self._template_read:
            self._template = chat_template(self._context)
            self._template_read = True
        return self._template

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("this engine is closed; open another one")

    def _open_error(self, error: ElizaError, options: Options) -> ElizaError:
        """The library's error in the words of this package, where it is about an option or about selecting."""
        try:
            unavailable = self.backend_report()["error"] == str(error)
        except ElizaError:
            unavailable = False
        if unavailable:
            return BackendUnavailable(str(error), error.status)
        return from_status(error.status, _options.in_our_words(str(error), options))
