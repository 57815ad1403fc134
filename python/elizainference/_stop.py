"""Stop strings in text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Lets text through up to the first stop string, however that is cut into pieces.

    >>> stop = StopStrings(["\\nUser:"])
    >>> stop.push("Paris.\\nUs")
    'Paris.'
    >>> stop.push("ually")
    '\\nUsually'
    >>> stop.push("\\nUser: Thanks")
    ''
    >>> stop.found
    True
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = tuple(strings)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The text that is certain now. What may be the beginning of a stop string is held back."""
        if not self._strings:
            return text
        text = self._held + text
        positions = [at for string in self._strings if (at := text.find(string)) >= 0]
        if positions:
            self.found = True
            end = min(positions)
            self._held = ""
        else:
            end = len(text) - max(_overlap(text, string) for string in self._strings)
            self._held = text[end:]
        return text[:end]

    def flush(self) -> str:
        """What is still held back, once no more text comes."""
        text, self._held = self._held, ""
        return text


def _overlap(text: str, string: str) -> int:
    """How much of the end of `text` is a beginning of `string`."""
    return next((n for n in range(min(len(text), len(string) - 1), 0, -1) if text.endswith(string[:n])), 0)
