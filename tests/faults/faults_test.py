"""Every allocation, read, write, fsync and rename of a session fails once: an error, and nothing lost (faults.cc)."""

from __future__ import annotations

import pytest

from tests.faults import output
from tests.support import models


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> list[dict]:
    folder = tmp_path_factory.mktemp("faults")
    files = [
        models.text_model("tiny_llama_cycle"),
        models.bundle("tiny_gemma3_litertlm") / "text/tiny_gemma3.litertlm",
        models.bundle("tiny_mlx_llama_f32") / "text/model.safetensors",
    ]
    # Leaks are looked for where a sanitizer can; elsewhere the program counts for itself.
    return output.lines(folder, *files, ASAN_OPTIONS="detect_leaks=1", LD_PRELOAD="")


def test_nothing_went_wrong(lines):
    assert output.problems(lines) == []


# How many calls a walk makes at the least: fewer, and the faults have missed it.
@pytest.mark.parametrize(
    ("what", "kind", "least", "least_errors"),
    [
        ("session", "allocate", 100, 90),
        ("session", "open", 8, 5),
        ("session", "read", 5, 4),
        ("session", "shrink", 4, 3),
        ("session", "write", 3, 3),
        ("session", "sync", 2, 1),
        ("session", "rename", 1, 1),
        ("session", "stat", 5, 3),
        ("session", "interrupt", 3, 0),
        ("session", "short write", 3, 0),
        *(
            (check, kind, least, least_errors)
            for check in ("check of .gguf", "check of .litertlm", "check of .safetensors")
            for kind, least, least_errors in (
                ("allocate", 5, 5),
                ("open", 1, 1),
                ("read", 1, 1),
                ("shrink", 1, 1),
                ("stat", 1, 1),
                ("interrupt", 1, 0),
            )
        ),
    ],
)
def test_each_call_failed_once(lines, what, kind, least, least_errors):
    walks = output.walks(lines, what, kind)
    assert walks, "no such walk"
    for line in walks:
        assert line["injected"] >= least, line
        assert line["errors"] >= least_errors, line


def test_a_first_session(lines):
    assert [line["injected"] >= 100 for line in lines if line.get("what") == "first session"] == [True]
