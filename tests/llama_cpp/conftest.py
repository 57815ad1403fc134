"""Fixtures of the llama.cpp tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.runfile import runfile


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """More would wait for each other on a machine that runs other tests; and the sums of the plain loop round alike."""
    monkeypatch.setenv("ELIZA_THREADS", "1")


@pytest.fixture(scope="session")
def demo_bundle() -> Path:
    """The bundle of SmolLM2-135M-Instruct."""
    return runfile(os.environ["DEMO_MANIFEST"]).parent


@pytest.fixture(scope="session")
def demo_model(demo_bundle) -> Path:
    """Its model file."""
    (model,) = (demo_bundle / "text").glob("*.gguf")
    return model
