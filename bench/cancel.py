"""How soon a cancel takes effect: from the call of cancel to the return of the next, or prefill, that it hits.

./bazelw run //bench:cancel [-- --json] [--rounds N]

In parts of what may pass: one decode step, and one prefill chunk of 512 tokens.
"""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from collections.abc import Callable

from bench import report
from tests.support import abi
from tests.support.runfile import runfile

PROMPT_TOKENS, CHUNK = 4000, 512


def latency(stream: abi.Stream, work: Callable[[], object], delay: float) -> float:
    """Seconds from a cancel, `delay` into `work`, until that has returned."""
    cancelled = [0.0]

    def cancel() -> None:
        time.sleep(delay)
        cancelled[0] = time.perf_counter()
        stream.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        while True:
            work()
    except abi.Error as error:
        returned = time.perf_counter()
        assert error.status == abi.CANCELLED
    thread.join()
    return returned - cancelled[0]


def worst(latencies: list[float]) -> float:
    """The 99th percentile; the largest of fewer than a hundred."""
    return sorted(latencies)[int(0.99 * (len(latencies) - 1) + 0.5)]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="cancels per phase (default: %(default)s)")
    arguments = parser.parse_args()
    randomly = random.Random(1)
    bundle = runfile(os.environ["MANIFEST"]).parent
    with abi.Context(bundle) as context, context.open(context_size=PROMPT_TOKENS + 600) as stream:
        words = context.tokenize("And then the next day came, and the story went on. ", add_special=False)
        prompt = (words * (PROMPT_TOKENS // len(words) + 1))[:PROMPT_TOKENS]

        start = time.perf_counter()
        stream.prefill(prompt[:CHUNK])
        chunk = time.perf_counter() - start
        steps = []
        stream.next(tokens_cap=1)
        for _ in range(20):
            start = time.perf_counter()
            stream.next(tokens_cap=1)
            steps.append(time.perf_counter() - start)
        step = statistics.median(steps)
        stream.reset()

        in_prefill, in_decode = [], []
        for _ in range(arguments.rounds):
            in_prefill.append(latency(stream, lambda: stream.prefill(prompt), randomly.uniform(0, 2 * chunk)))
            stream.reset()
            stream.prefill(prompt[:16])
            in_decode.append(latency(stream, lambda: stream.next(tokens_cap=1), randomly.uniform(0, 10 * step)))
            stream.reset()

    result = report.Report("cancel")
    result.lower("decode step", step * 1000, "ms")
    result.lower("cancel in a decode, p99", worst(in_decode) / step, "decode steps", limit=1)
    result.lower("prefill chunk", chunk * 1000, "ms")
    result.lower(f"cancel in a prefill of {PROMPT_TOKENS}, p99", worst(in_prefill) / chunk, "chunks", limit=1)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
