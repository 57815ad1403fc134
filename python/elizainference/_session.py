"""Chat, a conversation whose KV cache is kept between its turns."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from elizainference import _native
from elizainference._arguments import path_bytes, shown
from elizainference._chat import ChatTemplate, Message
from elizainference._errors import ElizaError, InvalidArgument, NotSupported, from_status
from elizainference._options import Options
from elizainference._stream import Completion, Stats, Stream, collect

if TYPE_CHECKING:
    from typing_extensions import Self


class Chat:
    """A conversation. `Engine.chat` begins one.

    Each turn is the model's chat template filled with all messages, as if the model read them anew. It reads only what
    differs from what its KV cache holds: the longest common prefix of the two is kept, where the model allows that.
    So the answer is the same, and comes sooner.

    A chat has one answer at a time: the next turn ends the one before. Different threads may take turns.
    """

    messages: list[Message]
    """What was said: a list that may be changed between turns, to correct a message, to drop old ones or to go back.

    A turn adds the user's message and the answer once the answer is complete. One that was cancelled or failed, or was
    left before its end, adds nothing."""

    def __init__(
        self,
        native: _native.Stream,
        template: ChatTemplate,
        options: Options,
        messages: Sequence[Message],
        opened_in: float,
    ) -> None:
        self.messages = message_list(messages)
        self._native = native
        self._template = template
        self._options = options
        self._opened_in = opened_in
        self._lock = threading.RLock()
        self._turn: _Turn | None = None
        self._used = False
        self._closed = False
        # The native context begins with these tokens; more may follow them.
        self._cached: list[int] = []

    def stream(self, message: str | Message) -> Stream:
        """Says something, and brings the answer piece by piece.

        Args:
          message: what the user says; or a message, such as `{"role": "tool", "content": "…"}`.

        Raises:
          InvalidArgument: the message is none, the template refuses it, or the chat is closed.
        """
        said: Message = {"role": "user", "content": message} if isinstance(message, str) else message
        with self._lock:
            self._check_open()
            prompt = self._template.tokens([*self.messages, said], self._options["disable_thinking"])
            self._end_turn()
            # The last token is read again in any case: what follows it is what the answer begins with.
            kept = self._keep(min(_common_prefix(self._cached, prompt), len(prompt) - 1))
            self._set_seed()
            self._turn = _Turn(self, said, prompt, kept, opened_in=0.0 if self._used else self._opened_in)
            self._used = True
            return self._turn

    def generate(self, message: str | Message) -> Completion:
        """Says something, and returns the whole answer. Argument and errors are those of `stream`."""
        return collect(self.stream(message))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the conversation and its KV cache to a file, which appears at once or not at all.

        Raises:
          InvalidArgument: an answer is still in progress; or the messages have more than 32 MiB.
          ElizaError, OSError: the file cannot be written.
        """
        import tempfile

        from elizainference import _archive  # like tempfile, it takes a while

        with self._lock:
            self._check_idle()
            path_bytes(path, "the path")
            self._keep(len(self._cached))
            folder = os.path.dirname(os.path.abspath(path))
            with tempfile.TemporaryDirectory(prefix=".eliza-", dir=folder) as parts:
                cache, whole = os.path.join(parts, "cache"), os.path.join(parts, "whole")
                self._native.save_slot(os.fsencode(cache))
                with open(whole, "xb") as file:
                    _archive.write(file, self.messages, self._cached, cache)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(whole, 0o600)
                os.replace(whole, path)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Goes on with a conversation that was saved, in place of this one; nothing of it is read again.

        Raises:
          InvalidArgument: the file is damaged, or of another model or other `cache_type_k` or `cache_type_v`; or an
            answer is in progress. The chat is as it was.
          OSError: the file cannot be read.
        """
        import tempfile

        from elizainference import _archive

        with self._lock:
            self._check_idle()
            name = os.fsdecode(path_bytes(path, "the path"))
            with tempfile.TemporaryDirectory(prefix="eliza-") as parts:
                messages, tokens, cache = _archive.read(name, parts)
                # Forgets a cancel, too.
                self._keep(len(self._cached))
                try:
                    self._native.restore_slot(os.fsencode(cache))
                except ElizaError as error:
                    raise from_status(error.status, str(error).replace(cache, name)) from None
            self.messages, self._cached, self._used = messages, tokens, True

    def close(self) -> None:
        """Ends the chat and frees its memory. Closing twice is fine."""
        # Before the lock, so that nobody waits for what another thread is in.
        turn = self._turn
        if turn is not None:
            turn.close()
        with self._lock:
            self._closed = True
            self._end_turn()
            self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def turn(self) -> Stream | None:
        """The answer in progress, or the last one; None before the first."""
        return self._turn

    def __repr__(self) -> str:
        return f"<Chat {len(self.messages)} messages{', closed' if self._closed else ''}>"

    def _keep(self, count: int) -> int:
        """Takes the context back to its first `count` tokens. Returns how many are left: those, or none."""
        if not self._used:
            # Nothing is there yet, and what prompt_cache_key has warmed stays warm.
            return 0
        kept = self._native.reset_keep(count)
        del self._cached[kept:]
        return kept

    def _set_seed(self) -> None:
        # A reset starts the native stream's own seed again: each turn would draw the same.
        if self._options["temperature"] > 0:
            seed = self._options["seed"]
            try:
                self._native.set_seed(secrets.randbits(64) if seed is None else seed)
            except NotSupported:
                if seed is not None:
                    raise

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("this chat is closed; begin another one")

    def _check_idle(self) -> None:
        self._check_open()
        if self._turn is not None and self._turn.running:
            raise InvalidArgument("an answer is still in progress; read it to its end, or close it")


class _Turn(Stream):
    """An answer in a chat: a stream on the chat's native stream, which outlives it.

    Args:
      chat: the chat, ready for `prompt[kept:]`.
      said: the message that is answered.
      prompt: tokens of the whole conversation, `said` included.
      kept: how many of them the KV cache holds.
      opened_in: seconds until the chat was open, for its first answer.
    """

    def __init__(self, chat: Chat, said: Message, prompt: list[int], kept: int, opened_in: float) -> None:
        super().__init__(chat._native, prompt[kept:], chat._options["stop"] or (), opened_in)
        self._chat = chat
        self._said = said
        self._whole_prompt = prompt
        self._kept = kept
        self._text: list[str] = []

    @property
    def running(self) -> bool:
        """The answer has not ended."""
        return self._final is None

    def cancel(self) -> None:
        # Once it has ended, the native stream is the next turn's.
        if self.running:
            super().cancel()

    def close(self) -> None:
        self.cancel()
        # The next turn may not begin while a thread is in this one.
        with self._reading:
            self._end("cancelled")

    def restore(self, path: str | os.PathLike[str]) -> None:
        raise InvalidArgument("this stream is an answer in a chat; restore the chat")

    def _prefill(self) -> None:
        super()._prefill()
        self._chat._cached = list(self._whole_prompt)

    def _received(self, text: str, tokens: tuple[int, ...]) -> None:
        self._text.append(text)
        self._chat._cached.extend(tokens)

    def _read_stats(self) -> Stats:
        # The library counts what it was given.
        stats = super()._read_stats()
        kept = self._kept if stats.prompt_tokens else 0
        return replace(stats, prompt_tokens=stats.prompt_tokens + kept, reused_tokens=stats.reused_tokens + kept)

    def _end(self, reason: str | None = None) -> None:
        complete = self.running and reason in (None, "stop_string")
        super()._end(reason)
        if complete:
            answer: Message = {"role": "assistant", "content": "".join(self._text)}
            self._chat.messages += [self._said, answer]

    def _release(self) -> None:
        """The native stream is the chat's."""


def message_list(messages: Iterable[Message]) -> list[Message]:
    """What was said before, as a list of its own.

    Raises:
      InvalidArgument: it is no list, but a single message or a text.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidArgument(
            f"the messages of a chat are {shown(messages)}; they must be a list such as "
            '[{"role": "system", "content": "…"}]'
        )
    return list(messages)


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
