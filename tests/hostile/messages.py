"""What the tests of hostile files ask of an error message."""

from __future__ import annotations

from tests.hostile import runner
from tests.support import abi


def refusal(call, *arguments, **options) -> str:
    """The message with which a call refuses."""
    try:
        result = call(*arguments, **options)
    except abi.Error as error:
        return readable(error.message)
    raise AssertionError(f"{call.__qualname__} took it, and returned {result!r}")


def readable(message: str | None) -> str:
    """Checks that a message can be shown to a person. (That it is UTF-8, abi has checked.)"""
    assert message, "an error without a message"
    assert len(message) < 4000, f"a message of {len(message)} characters"
    assert all(character.isprintable() for character in message), repr(message)
    assert "out of memory" not in message, message
    return message


def problems(cases: dict[str, bytes], check) -> tuple[list[str], int]:
    """(what went wrong, how many inputs were refused)."""
    outcomes = list(runner.run(list(cases), check))
    assert [outcome.name for outcome in outcomes] == list(cases)
    return [f"{outcome.name}: {outcome.problem}" for outcome in outcomes if outcome.problem], len(outcomes)
