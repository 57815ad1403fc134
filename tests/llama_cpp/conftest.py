"""Fixtures of the llama.cpp tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.runfile import runfile


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """SmolLM2-135M-Instruct."""
    bundle = runfile(os.environ["DEMO_MANIFEST"]).parent
    (model,) = (bundle / "text").glob("*.gguf")
    return model
