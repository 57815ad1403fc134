"""Prefill and decode speed through the C ABI and through Python, as a part of llama.cpp's own bench loop.

./bazelw run //bench:parity [-- --json] [--rounds N]               SmolLM2-135M, Q4_1
./bazelw run //bench:parity_gemma3_270m [-- --json] [--rounds N]   gemma-3-270m, Q4_K_M: fetches 253 MB

The three sides take turns, round by round, on the same model with the same number of threads, and each round gives a
ratio; the figures are medians of these. So what else runs on the machine hits all sides alike.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time

from bench import report
from tests.support.runfile import runfile

PROMPT_TOKENS = 512
DECODE_TOKENS = 128

# Between two turns. The worker threads of llama.cpp spin for some 100 ms after their last work before they sleep: that
# is not to be the cost of whoever comes next.
SETTLE_S = 0.5


class Native:
    """One of the two C++ sides, "bare" or "abi": a process of parity-loops."""

    def __init__(self, library: str, bundle: str, model: str, threads: int) -> None:
        self._process = subprocess.Popen(
            [
                runfile(os.environ["PARITY_LOOPS"]),
                library,
                bundle,
                model,
                str(PROMPT_TOKENS),
                str(DECODE_TOKENS),
            ],
            env=os.environ | {"ELIZA_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, side: str) -> tuple[float, float]:
        """One round: tokens per second of the prefill and of the decode."""
        print(side, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"parity-loops ended with exit code {self._process.wait()}")
        prefill, decode, decoded = map(float, line.split())
        return PROMPT_TOKENS / prefill, decoded / decode

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


class Python:
    """The Python side."""

    def __init__(self, bundle: str, threads: int) -> None:
        import elizainference as eliza

        self._threads = threads
        self._engine = eliza.Engine(bundle)
        text = ""
        while len(prompt := self._engine.tokenize(text)) < PROMPT_TOKENS:
            text += "And then the next day came, and the story went on. "
        self._prompt = prompt[:PROMPT_TOKENS]

    def run(self) -> tuple[float, float]:
        """One round: tokens per second of the prefill and of the decode."""
        os.environ["ELIZA_THREADS"] = str(self._threads)
        options = {
            "max_tokens": DECODE_TOKENS,
            "context_size": PROMPT_TOKENS + DECODE_TOKENS,
            "temperature": 0.0,
        }
        with self._engine.stream(self._prompt, **options) as stream:
            next(stream)
            start = time.perf_counter()
            decoded = sum(len(chunk.tokens) for chunk in stream)
            elapsed = time.perf_counter() - start
        return PROMPT_TOKENS / stream.timings.prefill, decoded / elapsed

    def close(self) -> None:
        """Ends the engine."""
        self._engine.close()


def measure(result: report.Report, library: str, bundle: str, model: str, threads: int, rounds: int) -> None:
    """Adds the figures for one number of threads."""
    bare, abi = (Native(library, bundle, model, threads) for _ in range(2))
    python = Python(bundle, threads)
    sides = {
        "bare": lambda: bare.run("bare"),
        "abi": lambda: abi.run("abi"),
        "python": python.run,
    }
    speeds: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for side in sides.values():
        side()  # files into the page cache, pages into memory
    names = list(sides)
    for i in range(rounds):
        for name in names[i % 3 :] + names[: i % 3]:
            time.sleep(SETTLE_S)
            speeds[name].append(sides[name]())
    for side in (bare, abi, python):
        side.close()

    suffix = f"{threads} thread" + ("s" if threads > 1 else "")
    for phase, work in enumerate((f"prefill {PROMPT_TOKENS}", f"decode {DECODE_TOKENS}")):
        base = [speed[phase] for speed in speeds["bare"]]
        result.higher(f"{work}, {suffix}, llama.cpp", statistics.median(base), "tokens/s")
        for side, label, limit in (("abi", "C ABI", 0.98), ("python", "Python", 0.95)):
            ratios = [speed[phase] / one for speed, one in zip(speeds[side], base, strict=True)]
            result.higher(f"{work}, {suffix}, {label}", statistics.median(ratios), "× llama.cpp", limit)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds per number of threads (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    arguments = parser.parse_args()

    library = str(runfile(os.environ["LIBRARY"]))
    os.environ["ELIZA_INFERENCE_LIBRARY"] = library
    (model,) = (runfile(path) for path in os.environ["MODEL"].split() if path.endswith(".gguf"))
    bundle = model.parent.parent
    result = report.Report(f"parity, {model.name}")
    for threads in arguments.threads:
        measure(result, library, str(bundle), str(model), threads, arguments.rounds)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
