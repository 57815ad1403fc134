"""Whether memory comes back: what a process has resident, and what is left of it after each cycle of some use."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

_STATM = Path("/proc/self/statm")
MEASURABLE = _STATM.exists()


def resident() -> int:
    """Bytes of memory that this process has, after giving back what it can."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growths(cycle: Callable[[], object], cycles: int, flat: int, warm_up: int) -> list[int]:
    """What `cycles` calls of `cycle` add to what is resident, in batch after batch until one adds less than `flat`.

    What is lost each time is lost in each of five batches. What comes once is not, such as the arena that malloc gives
    a thread when the one before has not ended yet: how often that happens is the machine's affair.
    """
    for _ in range(warm_up):
        cycle()
    batches: list[int] = []
    while len(batches) < 5 and (not batches or batches[-1] >= flat):
        before = resident()
        for _ in range(cycles):
            cycle()
        batches.append(resident() - before)
    return batches
