"""What a selection costs on a large bundle directory, with every backend compiled in and asked.

./bazelw run //bench:select [-- --json]
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench import report
from tests.support.runfile import runfile

FILES = 1_000
ROUNDS = 201


def load_seam():
    """The tests' extension module, of the variant with all gates on."""
    path = runfile(os.environ["SEAM"])
    spec = importlib.util.spec_from_file_location("_selector_testing", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def median_us(function, *arguments) -> float:
    """Microseconds per call, the median."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function(*arguments)
        rounds.append(time.perf_counter() - start)
    return statistics.median(rounds) * 1e6


def main() -> None:
    arguments = report.parser(__doc__).parse_args()
    os.environ.pop("ELIZA_LLM_BACKEND", None)
    seam = load_seam()
    seam.register_builtins()
    result = report.Report("select")
    with tempfile.TemporaryDirectory() as bundle:
        text = Path(bundle, "text")
        text.mkdir()
        (text / "model.gguf").touch()
        for i in range(FILES - 1):
            (text / f"part-{i:04}.bin").touch()
        assert seam.select_backend(bundle) == (None, None)
        result.lower("select, 1,000 files", median_us(seam.select_backend, bundle), "µs", limit=1000)
        result.lower("report, 1,000 files", median_us(seam.backend_report, bundle), "µs")
    result.print(arguments.json)


if __name__ == "__main__":
    main()
