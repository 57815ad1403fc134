"""Runs hostile inputs in child processes, many in each, and says what became of every one.

A child that dies or hangs names the input it was at, and another one goes on behind it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from tests.support import sanitizers

# What an input may take of the processor and of memory; of the former that is seventeen times what the slowest takes.
# Under ASan a list of 100,000 objects, which JSON's parser goes through again and again, takes 40 s.
CPU_LIMIT_S = 100 if sanitizers.ASAN else 2
MEMORY_LIMIT = 200 << 20
# For what waits and computes nothing.
HANG_S = 240


@dataclass(frozen=True)
class Outcome:
    """What became of an input: `messages` of the calls that refused it, or what went wrong."""

    name: str
    messages: list[str]
    problem: str | None = None


def run(names: list[str], check: Callable[[str], list[str]]) -> Iterator[Outcome]:
    """The outcome of `check(name)`, which returns messages, for each name."""
    done = 0
    while done < len(names):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _be_the_child(names[done:], check, write_end)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            for line in pipe:
                yield Outcome(**json.loads(line))
                done += 1
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if done < len(names):
            yield Outcome(names[done], [], _cause(code))
            done += 1


def _cause(code: int) -> str:
    if code == -signal.SIGPROF:
        return f"took more than {CPU_LIMIT_S} s of the processor"
    if code == -signal.SIGALRM:
        return f"hung for {HANG_S} s"
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"called exit({code})"


def _be_the_child(names: list[str], check: Callable[[str], list[str]], pipe: int) -> NoReturn:
    # A crash is a finding; its core would only fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for end in (signal.SIGPROF, signal.SIGALRM):
        faulthandler.register(end, file=2, chain=True)  # says where it was, and ends
    for name in names:
        signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT_S)
        signal.alarm(HANG_S)
        before = _forget_peak()
        try:
            outcome = Outcome(name, check(name))
        except BaseException as error:
            outcome = Outcome(name, [], f"{type(error).__name__}: {error}")
        grown = _status("VmHWM") - before
        if grown > MEMORY_LIMIT and outcome.problem is None:
            outcome = Outcome(name, [], f"took {grown >> 20} MB")
        os.write(pipe, json.dumps(vars(outcome)).encode() + b"\n")
    os._exit(0)


def _forget_peak() -> int:
    """Resets the peak of the memory in use; what is in use now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _status(field: str) -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    raise ValueError(f"/proc/self/status has no {field}")
