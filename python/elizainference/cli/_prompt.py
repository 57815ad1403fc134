"""What somebody types into a chat: lines with a history, or lines of a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elizainference.cli import _terminal

PROMPT = "> "
CONTINUATION = ". "
QUOTES = '"""'

_HISTORY_LINES = 1000


def default_history() -> Path:
    """Where the lines of earlier chats are: below $XDG_STATE_HOME, or ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "elizainference" / "history"


class Typed:
    """Messages that are typed: an iterator that ends with Ctrl-D, or with Ctrl-C at an empty prompt twice in a row.

    Three quotes begin and end a message of several lines. Arrow keys bring back former lines, where Python has
    readline.
    """

    interactive = True

    def __init__(self, history: Path | None) -> None:
        self._history = history
        self._readline = _readline()
        if self._readline and history is not None and history.exists():
            try:
                self._readline.read_history_file(history)
            except OSError as error:
                _terminal.note(f"the history {str(history)!r} cannot be read: {error.strerror}")

    def __iter__(self) -> Iterator[str]:
        interrupts = 0
        while interrupts < 2:
            try:
                message = self._message()
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                interrupts += 1
                print()
                if interrupts == 1:
                    _terminal.note("Ctrl-D or /quit ends the chat, and so does Ctrl-C once more.")
                continue
            interrupts = 0
            if message.strip():
                yield message
        raise KeyboardInterrupt

    def save_history(self) -> None:
        """Adds what was typed to the history file."""
        if self._readline is None or self._history is None:
            return
        try:
            self._history.parent.mkdir(parents=True, exist_ok=True)
            self._readline.set_history_length(_HISTORY_LINES)
            # What is asked of a model can be private.
            with open(self._history, "a"):
                os.chmod(self._history, 0o600)
            self._readline.write_history_file(self._history)
        except OSError as error:
            _terminal.note(f"the history {str(self._history)!r} cannot be written: {error.strerror}")

    def _message(self) -> str:
        line = input(PROMPT)
        if not line.startswith(QUOTES):
            return line
        lines = [line.removeprefix(QUOTES)]
        while not lines[-1].endswith(QUOTES):
            lines.append(input(CONTINUATION))
        return "\n".join([*lines[:-1], lines[-1].removesuffix(QUOTES)])


class Piped:
    """Messages from a pipe or a file, one a line."""

    interactive = False

    def __iter__(self) -> Iterator[str]:
        for line in sys.stdin:
            if line.strip():
                yield line.rstrip("\n")

    def save_history(self) -> None:
        """A pipe leaves none."""


def _readline() -> Any:
    """The module; None in a Python that was built without."""
    try:
        import readline
    except ImportError:
        return None
    return readline
