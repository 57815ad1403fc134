"""A fuzz target holds on its corpus and on small changes of it: no broken promise, no sanitizer's report."""

from __future__ import annotations

import os
import re
import subprocess

from tests.support.runfile import runfile


def test_replay():
    corpus = [runfile(path) for path in os.environ["CORPUS"].split()]
    assert corpus
    environment = os.environ | {"LD_PRELOAD": "", "ASAN_OPTIONS": "detect_leaks=1"}
    if bundle := os.environ.get("BUNDLE_FILE"):
        environment["FUZZ_BUNDLE"] = str(runfile(bundle).parent.parent)
    command = [runfile(os.environ["REPLAY"]), os.environ["CHANGES"], *corpus]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-4000:]}"
    assert done.stderr == ""
    found = re.fullmatch(r"(\d+) inputs\n", done.stdout)
    assert found, done.stdout
    assert int(found[1]) == len(corpus) * (1 + int(os.environ["CHANGES"]))
