"""Whether Python threads run while the library works, and whether two engines on two threads do as well as in C.

./bazelw run //bench:threads [-- --json] [--rounds N]

A heartbeat is a thread that sleeps for 10 ms at a time: 100 beats per second where nothing holds Python's lock. "idle"
is what a busy machine leaves of them while this process does nothing. The scaling is the decode speed of two engines on
two threads over that of one on one, Python's in parts of C's; the rounds of both take turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable

import elizainference as eliza

from bench import report
from tests.support.runfile import runfile

PROMPT_TOKENS, DECODE_TOKENS = 1000, 64
OPENS = 10
BEAT_S = 0.01


class Heartbeat:
    """Beats, counted in another thread of Python."""

    def __init__(self) -> None:
        self.beats = 0
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop:
            self.beats += 1
            time.sleep(BEAT_S)

    def rate(self, call: Callable[[], object]) -> float:
        """Beats per second while `call` runs."""
        beats, start = self.beats, time.perf_counter()
        call()
        return (self.beats - beats) / (time.perf_counter() - start)

    def stop(self) -> None:
        """Ends the thread."""
        self._stop = True
        self._thread.join()


def heartbeats(result: report.Report, bundle: str) -> None:
    """Adds the beats during open, prefill and next."""
    heart = Heartbeat()
    with eliza.Engine(bundle) as engine:
        words = engine.tokenize("And then the next day came, and the story went on. ", add_special=False)
        prompt = (words * (PROMPT_TOKENS // len(words) + 1))[:PROMPT_TOKENS]
        result.higher("idle", heart.rate(lambda: time.sleep(1)), "beats/s")
        # One takes a tenth of a second. Each loads the weights, for the one before has freed them.
        opening = heart.rate(lambda: [engine.stream(prompt).close() for _ in range(OPENS)])
        result.higher("open", opening, "beats/s", limit=80)
        with engine.stream(prompt) as stream:
            result.higher("prefill", heart.rate(lambda: next(stream)), "beats/s", limit=80)
            result.higher("next", heart.rate(lambda: [next(stream) for _ in range(100)]), "beats/s", limit=80)
    heart.stop()


class Native:
    """The C++ side: a process of threads-loop."""

    def __init__(self, library: str, bundle: str) -> None:
        command = [runfile(os.environ["THREADS_LOOP"]), library, bundle, str(DECODE_TOKENS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def speed(self, threads: int) -> float:
        """Tokens per second of `threads` contexts together."""
        print(threads, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


def python_speed(engines: list[eliza.Engine]) -> float:
    """Tokens per second of the engines together, a thread each."""

    def generate(engine: eliza.Engine) -> None:
        with engine.stream([1], max_tokens=DECODE_TOKENS) as stream:
            for _ in stream:
                pass

    threads = [threading.Thread(target=generate, args=(engine,)) for engine in engines]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(engines) * DECODE_TOKENS / (time.perf_counter() - start)


def scaling(result: report.Report, library: str, bundle: str, rounds: int) -> None:
    """Adds the speed of two over that of one, in C and in Python."""
    native, engines = Native(library, bundle), [eliza.Engine(bundle), eliza.Engine(bundle)]
    sides: dict[str, Callable[[int], float]] = {"C": native.speed, "Python": lambda n: python_speed(engines[:n])}
    gains: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds + 1):
        for side, speed in sides.items():
            one, two = speed(1), speed(2)
            gains[side].append(two / one)
    native.close()
    for engine in engines:
        engine.close()
    # The first of each brings files into the page cache.
    medians = {side: statistics.median(values[1:]) for side, values in gains.items()}
    for side, gain in medians.items():
        result.higher(f"two of one, {side}", gain, "x")
    result.higher("Python of C", medians["Python"] / medians["C"], "x", limit=0.95)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="pairs per side (default: %(default)s)")
    arguments = parser.parse_args()
    # Each stream has one, so that two have a core each.
    os.environ["ELIZA_THREADS"] = "1"
    library = str(runfile(os.environ["LIBRARY"]))
    bundle = str(runfile(os.environ["MANIFEST"]).parent)
    os.environ["ELIZA_INFERENCE_LIBRARY"] = library
    result = report.Report("threads")
    heartbeats(result, bundle)
    scaling(result, library, bundle, arguments.rounds)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
