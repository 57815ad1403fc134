"""What llama.cpp's backend allocates, reads and writes fails once: an error, and nothing lost (llama.cc)."""

from __future__ import annotations

import pytest

from tests.faults import output
from tests.support import models


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> list[dict]:
    return output.lines(tmp_path_factory.mktemp("slots"), models.bundle("tiny_llama_cycle"))


def test_nothing_went_wrong(lines):
    assert output.problems(lines) == []


@pytest.mark.parametrize("what", ["llama.cpp", "drafter"])
@pytest.mark.parametrize(
    ("kind", "least", "least_errors"),
    [
        ("allocate", 1000, 900),
        ("open", 8, 5),
        ("read", 30, 10),
        ("shrink", 10, 4),
        ("write", 3, 3),
        ("sync", 2, 1),
        ("rename", 1, 1),
        ("stat", 10, 5),
        ("interrupt", 10, 0),
        ("short write", 3, 0),
    ],
)
def test_each_call_failed_once(lines, what, kind, least, least_errors):
    walks = output.walks(lines, what, kind)
    assert len(walks) == (1 if kind == "interrupt" else 2)
    for line in walks:
        assert line["injected"] >= least, line
        assert line["errors"] >= least_errors, line
