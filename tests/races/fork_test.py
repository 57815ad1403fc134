"""What holds after a fork (docs/reliability.md): the parent goes on, and the child starts anew."""

from __future__ import annotations

import os

import pytest

from tests.support import abi, models

BUNDLE = models.bundle("tiny_llama_cycle")


def _generate() -> str:
    with abi.Context(BUNDLE) as context, context.open(max_tokens=8, context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        return stream.generate()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_child_with_contexts_of_its_own(monkeypatch, threads):
    monkeypatch.setenv("ELIZA_THREADS", threads)
    expected = models.alphabet("abc", 8)
    with abi.Context(BUNDLE) as context, context.open(max_tokens=8, context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        first = stream.next(tokens_cap=1).text
        child = os.fork()
        if child == 0:
            # Not pytest's: whatever happens, this process ends here.
            os._exit(0 if _generate() == expected and _generate() == expected else 1)
        assert first + stream.generate() == expected
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        stream.reset()
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == expected


def test_children_of_children():
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if _generate() == models.alphabet("abc", 8) else 1)
        _, status = os.waitpid(grandchild, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
