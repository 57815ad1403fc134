"""What the suite's tests share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager

import pytest

from tests.support import abi

PROMPT = "the quick brown fox"


def run(stream: abi.Stream, **caps) -> tuple[list[int], str]:
    """The tokens and the text of the rest of a generation."""
    steps = stream.steps(**caps)
    return [token for step in steps for token in step.tokens], "".join(step.text for step in steps)


def answer(context: abi.Context, prompt: str | Sequence[int] = PROMPT, **config) -> tuple[list[int], str]:
    """What a new stream generates."""
    with context.open(**({"max_tokens": 24, "context_size": 256} | config)) as stream:
        stream.prefill(context.tokenize(prompt) if isinstance(prompt, str) else prompt)
        return run(stream)


@contextmanager
def refused(statuses: int | tuple[int, ...], *fragments: str):
    """Expects an abi.Error of this status, or of one of these, whose message is a sentence and holds the fragments."""
    with pytest.raises(abi.Error) as caught:
        yield
    assert caught.value.status in (statuses if isinstance(statuses, tuple) else (statuses,)), str(caught.value)
    message = caught.value.message
    assert message and len(message.split()) >= 4, repr(message)
    for fragment in fragments:
        assert fragment in message
