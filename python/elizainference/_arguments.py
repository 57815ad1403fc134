"""What callers pass: text, paths and token ids, checked before the library sees them."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable

from elizainference._errors import ElizaError, InvalidArgument

# Characters of a value that a message shows.
_SHOWN = 200


def shown(value: object) -> str:
    """A value as a message shows it: its repr, cut where it is long, and its type where it has none."""
    try:
        text = repr(value)
    except Exception:  # anybody's code, or a number of more digits than Python writes
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def flag(value: bool, what: str) -> bool:
    """A bool. "no", which is true to Python, is none.

    Raises:
      InvalidArgument: it is something else.
    """
    if not isinstance(value, bool):
        raise InvalidArgument(f"{what} is {shown(value)}; it must be True or False")
    return value


def utf8(text: str, what: str) -> bytes:
    """`text` in UTF-8.

    Raises:
      InvalidArgument: it is no string, or holds half of a surrogate pair, as undecodable bytes of a command line
        become.
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} is {shown(text)}; it must be a string")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{what} holds {text[error.start]!r} at position {error.start}, which is no character; "
            "it must be valid Unicode"
        ) from None


def path_bytes(path: str | os.PathLike[str], what: str, kind: type[ElizaError] = InvalidArgument) -> bytes:
    """A path as the system has it.

    Raises:
      InvalidArgument, or `kind`: it is no path.
    """
    try:
        data = os.fsencode(path)
    except (TypeError, UnicodeEncodeError):
        raise kind(f"{what} is {shown(path)}; it must be a path, as a string or a pathlib.Path") from None
    if b"\0" in data:
        raise kind(f"{what} is {shown(path)}, and a path holds no NUL")
    return data


def token_ids(tokens: Iterable[int]) -> list[int]:
    """Token ids, of a list, a NumPy array or whatever else brings whole numbers.

    Raises:
      InvalidArgument: something in it is no token id, or it cannot be iterated over.
    """
    if isinstance(tokens, (str, bytes, bytearray)) or not isinstance(tokens, Iterable):
        raise InvalidArgument(f"the tokens are {shown(tokens)}; they must be a list of whole numbers")
    return [_token_id(token) for token in tokens]


def _token_id(token: int) -> int:
    try:
        number = -1 if isinstance(token, bool) else operator.index(token)
    except TypeError:
        number = -1
    if not 0 <= number < 2**31:
        raise InvalidArgument(f"a token id is {shown(token)}; token ids must be whole numbers from 0 to {2**31 - 1}")
    return number
