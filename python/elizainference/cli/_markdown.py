"""Markdown on a terminal, while it is being written."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from elizainference.cli._terminal import harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

# Often enough to look like typing, and seldom enough not to flicker or to take time from the model.
_REFRESH_S = 0.08

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")


def split_finished(text: str) -> tuple[str, str]:
    """`text` at the end of its last finished block: what no later text can change, and the rest.

    >>> split_finished("One.\\n\\nTwo")
    ('One.\\n\\n', 'Two')
    >>> split_finished("```\\na\\n\\nb")
    ('', '```\\na\\n\\nb')
    """
    end = position = 0
    fence = None
    blank = False
    for line in text.splitlines(keepends=True):
        # An indented line goes on with the block before a blank one, as the second paragraph of a list's item does.
        if blank and fence is None and line.strip() and not line[0].isspace():
            end = position
        marker = _FENCE.match(line)
        if marker and fence is None:
            fence = marker[1]
        elif marker and fence is not None and marker[1].startswith(fence):
            fence = None
        blank = not line.strip()
        position += len(line)
    return text[:end], text[end:]


class MarkdownWriter:
    """Shows Markdown as it comes: finished blocks stay, and the last one is drawn again as it grows.

    Nothing but this draws: no thread, so nothing is left behind whatever happens.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._live: Live | None = None
        self._drawn = 0.0
        self._blocks = 0

    def write(self, text: str) -> None:
        """Adds to the text."""
        finished, self._text = split_finished(self._text + harmless(text))
        if finished:
            self._show(finished)
        now = time.monotonic()
        if now - self._drawn >= _REFRESH_S:
            self._drawn = now
            self._draw()

    def end(self) -> None:
        """Shows what is left, and gives the terminal back."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
        if self._text.strip():
            self._show(self._text)
        self._text = ""

    def _show(self, text: str) -> None:
        from rich.markdown import Markdown

        if self._blocks:
            self._console.print()
        self._blocks += 1
        self._console.print(Markdown(text))

    def _draw(self) -> None:
        from rich.live import Live
        from rich.markdown import Markdown

        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Markdown(self._text), refresh=True)
