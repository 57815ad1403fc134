"""Waiting for what comes by itself, in its own time: on a busy machine later than on an idle one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

# Nothing that a test waits for takes long; what has not come by then never comes.
LIMIT_S = 120


def eventually(holds: Callable[[], object], limit_s: float = LIMIT_S) -> bool:
    """Waits until `holds()` is true. Whether it was, in the end."""
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _others_run() -> bool:
    """Whether another thread of this process has a processor, or waits for one: Linux alone tells."""
    for task in Path("/proc/self/task").glob("*"):
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if state == "R" and task.name != str(threading.get_native_id()):
            return True
    return False


def until_idle(limit_s: float = LIMIT_S) -> None:
    """Waits until all other threads of this process wait for something: none takes time of a processor, or would if it
    got one.

    For what must not happen, or shows nowhere: a test that looked at once would have seen nothing in any case.
    """
    quiet, before = 0, -1.0
    end = time.monotonic() + limit_s
    while quiet < 20:
        assert time.monotonic() < end, "other threads of this process go on computing"
        time.sleep(0.01)
        others = time.process_time() - time.thread_time()
        quiet = quiet + 1 if others - before < 1e-4 and not _others_run() else 0
        before = others


def threads_of(process: int | str = "self") -> int:
    """How many threads a process has. One that was joined may still be among them for a moment: see `eventually`."""
    return len(os.listdir(f"/proc/{process}/task"))
