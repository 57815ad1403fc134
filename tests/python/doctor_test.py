"""`eliza doctor`: what it finds, and what it advises."""

from __future__ import annotations

import json
import os

import pytest
from elizainference.cli import _doctor, main

from tests.support import models

CYCLE = str(models.bundle("tiny_llama_cycle"))


@pytest.fixture
def doctor(capfd):
    def doctor(*arguments: str) -> tuple[int, str, str]:
        return main(["doctor", *arguments]), *capfd.readouterr()

    return doctor


def test_this_machine(doctor):
    code, out, _ = doctor(CYCLE, "--json")
    report = json.loads(out)
    assert code == 0 and report["chosen"] == "llama.cpp"
    assert report["opened"] == {"backend": "llama.cpp", "device": "cpu"}
    host = report["host"]
    assert 1 <= host["usable_cores"] <= host["cores"] == os.cpu_count()
    assert 0 < host["available_mib"] <= host["memory_mib"]
    assert report["eliza"]["library_bytes"] > 1_000_000
    assert {row["name"] for row in report["backends"]} >= {"llama.cpp", "litert-lm", "mlx-coreml"}
    assert any("--//platforms:enable_litert" in line for line in report["advice"])


def test_for_people(doctor):
    code, out, _ = doctor(CYCLE)
    assert code == 0
    for fragment in ("processor", "cores usable", "MiB available", "its model loads", "To get more:"):
        assert fragment in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_without_a_bundle(doctor):
    code, out, err = doctor()
    assert (code, err) == (0, "") and "eliza bundle fetch" in out
    # Nothing is said of a bundle that nobody named.
    (row,) = [line.split() for line in out.splitlines() if line.startswith("llama.cpp ")]
    assert row[1:6] == ["yes", "yes", "-", "0", "no"] and "open will fail" not in out
    assert json.loads(doctor("--json")[1])["chosen"] is None


def test_a_model_that_does_not_load(doctor, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "m.gguf").write_bytes(models.text_model("tiny_llama_cycle").read_bytes()[:5000])
    code, out, err = doctor(str(tmp_path))
    assert code == 1 and "m.gguf" in err and "processor" in out


def test_a_backend_that_is_not_there(doctor, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "mlx-coreml")
    code, out, err = doctor(CYCLE)
    assert code == 1 and "ELIZA_LLM_BACKEND" in err and "mlx-coreml" in out


def test_a_log_that_cannot_be_written(doctor, monkeypatch, tmp_path):
    for log, told in (
        (tmp_path / "gone" / "log", True),
        (tmp_path, True),
        (tmp_path / "log", False),
        ("stderr", False),
    ):
        monkeypatch.setenv("ELIZA_LOG", str(log))
        assert ("there is no log" in doctor()[1]) == told, log


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"features": ["avx"]}, "cpu_level=baseline"),
        ({"available_mib": 100}, "100 MiB"),
        ({"load": 9.5}, "9.5 threads wait for 4 cores"),
        ({"usable_cores": 2, "cpu_quota": None}, "ELIZA_THREADS is 4 and 2 cores"),
        ({"usable_cores": 8, "cpu_quota": 1.5}, "ELIZA_THREADS is 4 and 1.5 cores"),
    ],
)
def test_advice(change, fragment):
    report = _doctor.examine(None)
    good = {"machine": "x86_64", "features": ["avx2", "fma", "f16c", "bmi2"], "available_mib": 4096}
    report["host"] |= {**good, "usable_cores": 4, "cpu_quota": None, "load": 0.5}
    report["environment"] = {"ELIZA_THREADS": "4"}
    before = _doctor.advice(report)
    report["host"] |= change
    (line,) = [line for line in _doctor.advice(report) if line not in before]
    assert fragment in line
