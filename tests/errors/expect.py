"""What an error must be: a status, and a message for a person who has to do something about it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.support import abi


def check_message(message: str | None, *fragments: str) -> None:
    """Checks that a message exists, reads as text and holds each of `fragments`, such as the value that was wrong."""
    assert message is not None, "an error without a message"
    # More than "invalid argument": a sentence.
    assert len(message.split()) >= 4, message
    assert message == message.strip(), repr(message)
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in {message!r}"
    for implementation in ("std::", "terminate", "basic_string", "json.exception", "0x7f"):
        assert implementation not in message, message


@contextmanager
def error(status: int, *fragments: str):
    """Expects the body to raise an abi.Error of this status."""
    with pytest.raises(abi.Error) as caught:
        yield
    assert caught.value.status == status, str(caught.value)
    check_message(caught.value.message, *fragments)
