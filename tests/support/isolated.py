"""Tests that run in a process of their own, for what might end it, and for what it might print.

    @isolated
    def test_garbage(tmp_path): ...

The body runs in a forked child whose standard output and error go to a file. The test fails when the body raises,
when the child dies or hangs, and when anything was written: the library writes nothing to either. What the child
sets (environment variables, limits) ends with it.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from typing import NoReturn

import pytest

# Far beyond what a test takes, and within the timeout of a small one.
_LIMIT_S = 240
_DONE = b"done"


def isolated(test: Callable) -> Callable:
    """Makes a test function run in a forked child process; see the module's comment."""

    @functools.wraps(test)
    def wrapper(*args, **kwargs) -> None:
        with tempfile.TemporaryFile() as output:
            problem = _run(functools.partial(test, *args, **kwargs), output.fileno())
            output.seek(0)
            written = output.read()
        if problem:
            pytest.fail(f"{problem}\nwritten to stdout and stderr: {written!r}", pytrace=False)
        assert written == b"", "something was written to stdout or stderr"

    return wrapper


def _run(body: Callable[[], None], output: int) -> str | None:
    """Runs `body` in a child. None when it returned; else what went wrong."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _be_the_child(body, write_end, output)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        said = pipe.read()  # until the child has ended
    _, status = os.waitpid(child, 0)
    if said:
        return None if said == _DONE else said.decode()
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"hung for {_LIMIT_S} s"
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"called exit({code})"


def _be_the_child(body: Callable[[], None], pipe: int, output: int) -> NoReturn:
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.alarm(_LIMIT_S)
    faulthandler.register(signal.SIGALRM, file=2, chain=True)  # says where it hangs, and ends
    try:
        body()
        said = _DONE
    except BaseException:  # also SystemExit and pytest's own
        said = traceback.format_exc().encode()
    os.write(pipe, said)
    os._exit(0)  # not the parent's exit handlers
