"""`eliza chat`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from elizainference._engine import Engine
from elizainference._errors import Cancelled, ElizaError, InvalidArgument
from elizainference._session import Chat
from elizainference.cli import _prompt, _terminal
from elizainference.cli._backends import show
from elizainference.cli._bundles import resolve
from elizainference.cli._figures import figures, totals
from elizainference.cli._flags import RUNTIME, SAMPLING, BundleArgument, engine_options
from elizainference.cli._markdown import MarkdownWriter

HELP = '''\
/backend        which backend answers, and why
/stats          figures of the last answer and of the KV cache
/system TEXT    begin again, with these instructions
/reset          begin again
/save FILE      save the conversation and what the model has read of it
/load FILE      go on with a saved conversation
/help           this list
/quit           end, as Ctrl-D does
Ctrl-C ends an answer. """ begins and ends a message of several lines.'''
# {command: what has to follow it}
_TAKES = {"system": "TEXT", "save": "FILE", "load": "FILE"}


@engine_options(SAMPLING | RUNTIME)
def chat(
    bundle: BundleArgument,
    *,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="Instructions before the conversation.")] = None,
    markdown: Annotated[bool, typer.Option(help="Format answers, on a terminal that can show it.")] = True,
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where typed lines are kept.", show_default=False)
    ] = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Keep none.")] = False,
    options: dict[str, Any],
) -> None:
    """Talk with a model, turn by turn; /help lists what else can be typed.

    Where the input is a pipe, each line is a turn, and answers are plain text.
    """
    source: _prompt.Typed | _prompt.Piped = _prompt.Piped()
    if sys.stdin.isatty() and sys.stdout.isatty():
        source = _prompt.Typed(None if no_history else history or _prompt.default_history())
    first = [{"role": "system", "content": system}] if system is not None else []
    with Engine(resolve(bundle), **options) as engine, engine.chat(first) as session:
        talk = Conversation(engine, session, source.interactive, markdown)
        if source.interactive:
            talk.greet()
        try:
            for message in source:
                if not talk.take(message):
                    break
        finally:
            source.save_history()


class Conversation:
    """What happens with each line."""

    def __init__(self, engine: Engine, chat: Chat, interactive: bool, markdown: bool) -> None:
        self._engine = engine
        self._chat = chat
        self._interactive = interactive
        self._markdown = markdown and interactive and _terminal.can_draw()

    def greet(self) -> None:
        """Says who is there."""
        name = self._engine.metadata("general.name") or self._engine.bundle
        _terminal.note(_terminal.joined([_terminal.harmless(name), "/help lists commands, Ctrl-D ends"]))

    def take(self, line: str) -> bool:
        """Does what a line says. Ctrl-C ends that, and not the conversation. Returns whether this goes on."""
        try:
            if line.startswith("/"):
                return self.command(line)
            self.answer(line)
        except KeyboardInterrupt:
            if not self._interactive:
                raise
            _terminal.note("(ended; the conversation goes on as if this had not been asked)")
        return True

    def answer(self, message: str) -> None:
        """Shows the answer to a message.

        Raises:
          KeyboardInterrupt: Ctrl-C has ended it.
        """
        try:
            stream = self._chat.stream(message)
            writer = self._writer()
            # The terminal is given back before Ctrl-C can raise anything again.
            with _terminal.ctrl_c(stream.cancel):
                try:
                    for chunk in stream:
                        writer.write(chunk.text)
                finally:
                    writer.end()
        except Cancelled:
            raise KeyboardInterrupt from None
        except ElizaError as error:
            if not self._interactive:
                raise
            _terminal.error(str(error))
        else:
            if stream.stats.stop_reason == "context_full":
                _terminal.note("(the context is full: /reset begins again, --context-size makes it larger)")

    def command(self, line: str) -> bool:
        """Does what a line with a slash asks for. Returns whether the conversation goes on."""
        name, _, argument = line[1:].strip().partition(" ")
        argument = argument.strip()
        if name in ("quit", "exit", "bye"):
            return False
        actions: dict[str, Callable[[], None]] = {
            "help": lambda: _terminal.note(HELP),
            "backend": lambda: show(self._engine.backends()),
            "stats": self._stats,
            "reset": lambda: self._begin(self._chat.messages[:1], "a new conversation"),
            "system": lambda: self._begin([{"role": "system", "content": argument}], "a new conversation"),
            "save": lambda: self._file(self._chat.save, argument, "saved to"),
            "load": lambda: self._file(self._chat.restore, argument, "going on with"),
        }
        action = actions.get(name)
        try:
            if action is None:
                raise InvalidArgument(f"there is no command {line!r}; /help lists them")
            if name in _TAKES and not argument:
                raise InvalidArgument(f"/{name} takes a {_TAKES[name]}; /help lists what there is")
            action()
        except (ElizaError, OSError) as error:
            if not self._interactive:
                raise
            _terminal.error(str(error))
        return True

    def _writer(self) -> MarkdownWriter | _terminal.AnswerWriter:
        return MarkdownWriter(_terminal.stdout()) if self._markdown else _terminal.AnswerWriter(sys.stdout)

    def _stats(self) -> None:
        if self._chat.turn is None:
            _terminal.note("nothing was answered yet")
            return
        _terminal.note(figures(self._chat.turn))
        _terminal.note(totals(self._chat.turn))

    def _begin(self, messages: list[Any], what: str) -> None:
        self._chat.messages[:] = [message for message in messages if message["role"] == "system"]
        _terminal.note(what)

    def _file(self, action: Any, path: str, done: str) -> None:
        action(path)
        _terminal.note(f"{done} {path}: {len(self._chat.messages)} messages")
