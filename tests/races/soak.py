"""Uses the library for minutes, and says how memory and descriptors grow: --minutes=30.

Opens, prefills, generates, cancels, saves, restores and closes in random order, on up to four streams at a time, and
samples the process meanwhile. The slope is the least-squares one of the second half, when what is kept has its size.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.support import abi, models

# Those of which the tiny vocabulary has no longer tokens, behind which the model says something else.
LETTERS = "bcdfgjk "
# {kind of step: what it is refused with}; nothing else may fail.
_REFUSALS = {0: abi.CANCELLED, 4: abi.INVALID_ARG}


def _rss() -> int:
    """As it is. Not memory.resident(), which gives back first what it can: a user's process does not."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def slope(points: list[tuple[float, float]]) -> float:
    """The least-squares slope of (x, y) points."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


class Soak:
    """One process's worth of random use."""

    def __init__(self, bundle: Path, folder: Path, seed: int) -> None:
        self.bundle, self.folder, self.random = bundle, folder, random.Random(seed)
        self.counts = {"sessions": 0, "generations": 0, "cancels": 0, "slots": 0, "refusals": 0}

    def session(self) -> None:
        """A context, some streams on it, and a few steps on each."""
        self.counts["sessions"] += 1
        with abi.Context(self.bundle) as context:
            for _ in range(self.random.randrange(1, 5)):
                key = self.random.choice([None, "warm"])
                with context.open(max_tokens=16, context_size=128, prompt_cache_key=key) as stream:
                    for _ in range(self.random.randrange(1, 6)):
                        self._step(context, stream)

    def _step(self, context: abi.Context, stream: abi.Stream) -> None:
        prompt = "".join(self.random.choices(LETTERS, k=self.random.randrange(1, 40)))
        kind = self.random.randrange(5)
        try:
            if kind == 4:
                stream.prefill([10**6])
                raise AssertionError("a token that is none was taken")
            stream.reset()
            stream.prefill(context.tokenize(prompt))
            if kind == 0:
                cancel = threading.Timer(self.random.random() / 500, stream.cancel)
                cancel.start()
                try:
                    stream.generate()
                finally:
                    cancel.join()
                    self.counts["cancels"] += 1
            else:
                assert stream.generate() == models.alphabet(prompt, 16)
                self.counts["generations"] += 1
            if kind == 1:
                slot = os.fsencode(self.folder / f"slot{self.random.randrange(3)}")
                context.library.call("llm_stream_save_slot", stream.handle, slot)
                context.library.call("llm_stream_restore_slot", stream.handle, slot)
                self.counts["slots"] += 1
        except abi.Error as error:
            if error.status != _REFUSALS.get(kind):
                raise
            self.counts["refusals"] += 1
        stream.reset()


def main() -> int:
    """Prints a line of JSON; 1 where memory or descriptors grew, or something is left open."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-kb-per-minute", type=float, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(models.bundle("tiny_llama_cycle"), Path(folder), options.seed)
        start = time.monotonic()
        samples: list[tuple[float, int, int]] = []
        while (minutes := (time.monotonic() - start) / 60) < options.minutes:
            soak.session()
            if not samples or minutes - samples[-1][0] > options.minutes / 400:
                samples.append((minutes, _rss(), len(os.listdir("/proc/self/fd"))))
    live = abi.live()
    late = samples[len(samples) // 2 :]
    growth = slope([(minutes, rss / 1024) for minutes, rss, _ in late])
    descriptors = slope([(minutes, count) for minutes, _, count in late])
    grew = growth > options.most_kb_per_minute or descriptors > 0.1 or live != abi.NOTHING_LIVE
    report = {
        "minutes": round(minutes, 1),
        **soak.counts,
        "rss_mb": round(samples[-1][1] / 2**20, 1),
        "rss_kb_per_minute": round(growth, 1),
        "descriptors": samples[-1][2],
        "descriptors_per_minute": round(descriptors, 3),
        "live": live,
        "grew": grew,
    }
    print(json.dumps(report))
    return int(grew)


if __name__ == "__main__":
    sys.exit(main())
