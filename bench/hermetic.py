"""Prefill and decode speed of the hermetic build, as a part of the host compiler's.

./bazelw run //bench:hermetic [-- --json] [--rounds N] [--threads N...] [--library PATH]

Both libraries run the demo model through the C ABI, in turns; each round gives a ratio, and the figures are medians of
these. Each turn has a process of its own: some 1.5 % of a prefill hang on where it happens to lie in memory. --library
compares another library than the hermetic one: a build with other flags.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from bench import report
from bench.parity import DECODE_TOKENS, PROMPT_TOKENS, Native
from tests.support.runfile import runfile


def _speed(library: str, bundle: str, model: str, threads: int) -> tuple[float, float]:
    """One turn, in a new process."""
    side = Native(library, bundle, model, threads)
    side.run("abi")  # files into the page cache, pages into memory
    speed = side.run("abi")
    side.close()
    return speed


def measure(result: report.Report, libraries: dict[str, str], bundle: Path, threads: int, rounds: int) -> None:
    """Adds the figures for one number of threads."""
    (model,) = (bundle / "text").glob("*.gguf")
    speeds: dict[str, list[tuple[float, float]]] = {name: [] for name in libraries}
    for i in range(rounds):
        for name in list(libraries)[:: 1 if i % 2 else -1]:
            speeds[name].append(_speed(libraries[name], str(bundle), str(model), threads))

    host, hermetic = speeds.values()
    suffix = f"{threads} thread" + ("s" if threads > 1 else "")
    for phase, work in enumerate((f"prefill {PROMPT_TOKENS}", f"decode {DECODE_TOKENS}")):
        base = [one[phase] for one in host]
        ratios = [one[phase] / other for one, other in zip(hermetic, base, strict=True)]
        result.higher(f"{work}, {suffix}, host compiler", statistics.median(base), "tokens/s")
        result.higher(f"{work}, {suffix}, hermetic", statistics.median(ratios), "× host compiler", 0.97)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds per number of threads (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--library", help="the library to compare (default: //:elizainference_linux_x86_64)")
    arguments = parser.parse_args()

    libraries = {
        "host": str(runfile(os.environ["HOST_LIBRARY"])),
        "hermetic": arguments.library or str(runfile(os.environ["HERMETIC_LIBRARY"])),
    }
    bundle = runfile(os.environ["MANIFEST"]).parent
    result = report.Report("hermetic")
    for threads in arguments.threads:
        measure(result, libraries, bundle, threads, arguments.rounds)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
