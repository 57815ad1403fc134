"""Every allocation of the LiteRT-LM backend fails once: an error, and nothing lost (litert_lm.cc)."""

from __future__ import annotations

import json
import os
import subprocess

from tests.support import models
from tests.support.runfile import runfile


def test_every_allocation_fails_once():
    model = models.bundle("tiny_gemma3_litertlm") / "text/tiny_gemma3.litertlm"
    command = [runfile(os.environ["FAULTS"]), runfile(os.environ["FAKE"]), model]
    finished = subprocess.run(command, capture_output=True, text=True, errors="replace")
    assert finished.stderr == ""
    assert finished.returncode in (0, 1), f"died with {finished.returncode}: {finished.stdout[-2000:]}"
    lines = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [line["problem"] for line in lines if "problem" in line] == []
    # Those of the caller's thread alone are more.
    assert [line["injected"] >= 30 and line["errors"] >= 25 for line in lines] == [True, True]
