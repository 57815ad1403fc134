"""Fixtures of the LiteRT-LM tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import abi, models
from tests.support.runfile import runfile


@pytest.fixture(autouse=True)
def environment(monkeypatch) -> None:
    """The runtime of the wheel, on the CPU, with one thread."""
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", os.fspath(runfile(os.environ["LITERT_LM"])))
    monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", "cpu")
    monkeypatch.setenv("ELIZA_THREADS", "1")
    for name in ("ELIZA_LLM_BACKEND", "ELIZA_CONTEXT_SIZE", "ELIZA_LITERT_CACHE_DIR", "ELIZA_LITERT_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bundle() -> Path:
    """A bundle that holds nothing but the tiny Gemma 3."""
    return models.bundle("tiny_gemma3_litertlm")


@pytest.fixture
def context(bundle) -> Iterator[abi.Context]:
    """A context on it."""
    with abi.Context(bundle) as context:
        yield context
