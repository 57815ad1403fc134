"""What the seam costs: a `next` at the C ABI and a token in Python, on a backend that does nothing.

./bazelw run //bench:seam [-- --json]
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import tempfile
import time

from bench import report
from tests.support.runfile import runfile

CALLS = 100_000
TOKENS = 20_000
ROUNDS = 9


def c_abi_ns(library: str, bundle: str) -> float:
    """Nanoseconds per call of next, from C++."""
    command = [runfile(os.environ["SEAM_LOOP"]), library, bundle, str(CALLS)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def python_us(library: str, bundle: str) -> float:
    """Microseconds per token of a loop over Engine.stream."""
    os.environ["ELIZA_INFERENCE_LIBRARY"] = library
    import elizainference as eliza

    with eliza.Engine(bundle) as engine:
        # The package has loaded it: the same file is the same library.
        ctypes.CDLL(library).eliza_test_fake_backend(None)
        rounds = []
        for _ in range(ROUNDS):
            with engine.stream([97], max_tokens=TOKENS) as stream:
                next(stream)
                start = time.perf_counter()
                count = sum(len(chunk.tokens) for chunk in stream)
                rounds.append((time.perf_counter() - start) / count)
            assert count == TOKENS - 1
    return statistics.median(rounds) * 1e6


def main() -> None:
    arguments = report.parser(__doc__).parse_args()
    library = str(runfile(os.environ["FAKE_LIBRARY"]))
    result = report.Report("seam")
    with tempfile.TemporaryDirectory() as bundle:
        result.lower("next at the C ABI", c_abi_ns(library, bundle), "ns", limit=1000)
        result.lower("token in Python", python_us(library, bundle), "µs", limit=20)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
