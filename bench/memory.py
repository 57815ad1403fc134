"""What a stream takes, and whether it gives it back: resident memory after open, 1,000 tokens and close, and its
slope over 200 cycles of open, generate and close.

./bazelw run //bench:memory [-- --json] [--cycles N]

Linux: /proc/self/statm. The library and its model share the process with Python, whose own memory is the base.
"""

from __future__ import annotations

import os

from bench import report
from tests.support import abi
from tests.support.runfile import runfile

TOKENS = 1000
MIB = 1 << 20


def resident() -> float:
    """MiB of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def slope(values: list[float]) -> float:
    """Of the least-squares line through them, per step."""
    n = len(values)
    mean_x, mean_y = (n - 1) / 2, sum(values) / n
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(values))
    return covariance / sum((x - mean_x) ** 2 for x in range(n))


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--cycles", type=int, default=200, help="cycles for the slope (default: %(default)s)")
    arguments = parser.parse_args()
    bundle = runfile(os.environ["MANIFEST"]).parent
    result = report.Report("memory")
    abi.load()
    base = resident()
    with abi.Context(bundle) as context:
        prompt = context.tokenize("Once upon a time")
        with context.open(context_size=TOKENS + 64, max_tokens=TOKENS) as stream:
            result.lower("after open", resident() - base, "MiB")
            stream.prefill(prompt)
            stream.generate()
            result.lower(f"after {TOKENS} tokens", resident() - base, "MiB")
        result.lower("after close", resident() - base, "MiB")
    result.lower("after destroy", resident() - base, "MiB")

    after = []
    for _ in range(arguments.cycles):
        with abi.Context(bundle) as context, context.open(context_size=256, max_tokens=4) as stream:
            stream.prefill(prompt)
            stream.generate()
        after.append(resident())
    # The allocator settles in the first cycles.
    result.lower("slope", slope(after[len(after) // 4 :]) * 1024, "KiB per cycle", limit=16)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
