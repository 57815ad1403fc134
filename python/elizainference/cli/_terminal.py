"""What goes to stdout and stderr, and how."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Control characters of Unicode's Cc, and what turns the direction of text around: a terminal obeys them. A model's
# text may only be read. Line breaks and tabs are text.
_CONTROL = [*range(0x00, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {
    code: chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
    for code in _CONTROL
    if chr(code) not in "\n\t"
}


def harmless(text: str) -> str:
    """`text` with characters that a terminal would obey as characters that it shows.

    >>> harmless("\\x1b[31mred")
    '␛[31mred'
    """
    return text.translate(_SHOWN)


class AnswerWriter:
    """Writes an answer as it comes, unbuffered: harmless on a terminal, and as it is into a pipe or a file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._at_line_start = True

    def write(self, text: str) -> None:
        if not text:
            return
        self._stream.write(harmless(text) if self._terminal else text)
        self._stream.flush()
        self._at_line_start = text.endswith("\n")

    def end(self) -> None:
        """A line break, unless there is one."""
        if not self._at_line_start:
            self.write("\n")


def prepare_streams() -> None:
    """Streams that were closed before the command began are empty; a character an encoding lacks is shown as `?`."""
    sys.stdin = sys.stdin or open(os.devnull)
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    # What is no text is refused where it is used, with its place.
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace"), (sys.stderr, "replace")):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=errors)


def stdout() -> Console:
    """Stdout: in a pipe without colour, and a line as long as it is."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 10_000)


def has_unicode() -> bool:
    """Whether stdout shows more than ASCII."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def can_draw() -> bool:
    """Whether stdout is a terminal that moves its cursor, and shows what Markdown is drawn with."""
    console = stdout()
    return console.is_terminal and not console.is_dumb_terminal and has_unicode()


def print_table(table: Table) -> None:
    """Prints a table, without blanks at the ends of its lines."""
    console = stdout()
    with console.capture() as capture:
        console.print(table)
    text = capture.get()
    # Where there is colour, a blank may have one.
    sys.stdout.write(text if console.is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines()))
    sys.stdout.flush()


@contextmanager
def ctrl_c(action: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C does `action`, in place of raising an exception wherever the program happens to be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, lambda *_: action())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def note(text: str) -> None:
    """A line beside the answer: dim, on stderr."""
    _stderr().print(text, style="dim")


def error(text: str) -> None:
    """The message of a failure, on stderr."""
    _stderr().print(f"eliza: {harmless(text)}")


def _stderr() -> Console:
    from rich.console import Console  # which takes a while

    # Text is printed as it is: no markup, nothing cut or wrapped.
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def joined(parts: Iterable[str]) -> str:
    """Facts on one line, those there are."""
    return (" · " if has_unicode() else ", ").join(part for part in parts if part)
