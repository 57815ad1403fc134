"""Every allocation of the LiteRT-LM backend fails once: an error, and nothing lost (litert_lm.cc)."""

from __future__ import annotations

import os

from tests.faults import output
from tests.support import models
from tests.support.runfile import runfile


def test_every_allocation_fails_once():
    model = models.bundle("tiny_gemma3_litertlm") / "text/tiny_gemma3.litertlm"
    lines = output.lines(runfile(os.environ["FAKE"]), model)
    assert output.problems(lines) == []
    # Those of the caller's thread alone are more.
    assert [line["injected"] >= 30 and line["errors"] >= 25 for line in lines] == [True, True]
