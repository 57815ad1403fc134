"""What holds after a fork (docs/reliability.md): the parent goes on, and the child starts anew."""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

import pytest

from tests.support import abi, models

BUNDLE = models.bundle("tiny_llama_cycle")


def _generate() -> str:
    with abi.Context(BUNDLE) as context, context.open(max_tokens=8, context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        return stream.generate()


def _generate_and_exit(times: int) -> NoReturn:
    """Ends this process, which is not pytest's, whatever happens."""
    try:
        texts = [_generate() for _ in range(times)]
        print(texts, file=sys.stderr, flush=True)
        os._exit(0 if texts == [models.alphabet("abc", 8)] * times else 1)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_child_with_contexts_of_its_own(monkeypatch, threads):
    monkeypatch.setenv("ELIZA_THREADS", threads)
    expected = models.alphabet("abc", 8)
    with abi.Context(BUNDLE) as context, context.open(max_tokens=8, context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        first = stream.next(tokens_cap=1).text
        child = os.fork()
        if child == 0:
            _generate_and_exit(times=2)
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
            _generate_and_exit(times=1)
        _, status = os.waitpid(grandchild, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
