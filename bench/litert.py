"""What a stream of the LiteRT-LM backend takes more than the library's own streaming loop, on one CPU thread.

./bazelw run //bench:litert [-- --json] [--rounds N] [--bundle FOLDER]

The model is the tests' tiny one, which has a token every few hundred microseconds: on any other the part of ours is
smaller. The two sides take turns, round by round, and each round gives a ratio; the figures are medians of these.
"""

from __future__ import annotations

import os
import statistics
import subprocess

from bench import report
from tests.support.runfile import runfile

DECODE_TOKENS = 256


class Loops:
    """A process of litert-loops."""

    def __init__(self, bundle: str) -> None:
        library, runtime = (os.fspath(runfile(os.environ[name])) for name in ("LIBRARY", "LITERT_LM"))
        (model,) = (runfile(bundle) / "text").glob("*.litertlm")
        self._process = subprocess.Popen(
            [runfile(os.environ["LITERT_LOOPS"]), library, bundle, model, runtime, str(DECODE_TOKENS)],
            env=os.environ
            | {"ELIZA_THREADS": "1", "ELIZA_LITERT_ACCELERATOR": "cpu", "ELIZA_LITERT_LM_LIBRARY": runtime},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, side: str) -> tuple[float, float, int]:
        """One round: seconds of the prefill and of the decode, and the bytes of text."""
        print(side, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"litert-loops ended with exit code {self._process.wait()}")
        prefill, decode, size = line.split()
        return float(prefill), float(decode), int(size)

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=31, help="rounds (default: %(default)s)")
    parser.add_argument("--bundle", default=os.fspath(runfile(os.environ["MODEL"]).parents[1]), help="another bundle")
    arguments = parser.parse_args()

    loops = Loops(arguments.bundle)
    sides = ["bare", "abi"]
    for side in sides:
        loops.run(side)  # files into the page cache, pages into memory
    rounds = []
    for i in range(arguments.rounds):
        figures = {side: loops.run(side) for side in (sides if i % 2 else sides[::-1])}
        rounds.append((figures["bare"], figures["abi"]))
    loops.close()
    if any(bare[2] != abi[2] for bare, abi in rounds):
        raise SystemExit("the two sides did not generate the same text")

    result = report.Report("litert")
    for phase, work, limit in ((1, f"decode {DECODE_TOKENS}", 1.05), (0, "prefill 145", None)):
        bare = [bare[phase] for bare, _ in rounds]
        result.lower(f"{work}, LiteRT-LM's own loop", 1000 * statistics.median(bare), "ms")
        ratios = [abi[phase] / bare[phase] for bare, abi in rounds]
        result.lower(f"{work}, C ABI", statistics.median(ratios), "× its own loop", limit)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
