"""Cancels at random points, closes of streams in use, eight streams at once: races.cc, and what it met."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support import models
from tests.support.runfile import runfile

CANCELS, CLOSES, ROUNDS = (int(number) for number in os.environ["COUNTS"].split())


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """The model that MODEL names; where it names none, a bundle for the alphabet's backend, which reads nothing."""
    if model := os.environ["MODEL"]:
        return models.bundle(model)
    empty = tmp_path_factory.mktemp("bundle")
    (empty / "text").mkdir()
    return empty


@pytest.fixture(scope="module")
def met(bundle) -> dict:
    command = [runfile(os.environ["RACES"]), bundle, *map(str, (CANCELS, CLOSES, ROUNDS))]
    environment = os.environ | {"LD_PRELOAD": ""}
    if runtime := os.environ.get("RUNTIME"):
        environment["ELIZA_LITERT_LM_LIBRARY"] = str(runfile(runtime))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-4000:]}"
    assert done.stderr == ""
    print(done.stdout)
    return json.loads(done.stdout)


def test_the_answer_is_the_models(met):
    if os.environ["MODEL"] in ("", "tiny_llama_cycle"):
        assert met["answer"] == "hijklm"
    assert met["answer"]


def test_every_cancel_met_a_call(met):
    assert met["in_prefill"] + met["in_next"] == met["cancels"] >= CANCELS
    assert met["in_prefill"] > 0
    assert met["in_next"] > 0


def test_some_closes_met_a_call(met):
    assert met["closes"] >= CLOSES
    assert met["closes_in_a_call"] > 0
