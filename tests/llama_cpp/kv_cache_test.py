"""The estimate of a KV cache's size is what llama.cpp then allocates."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

# Before the library's first message: it reads the variable once.
LOG = Path(tempfile.mkdtemp(), "log")
os.environ["ELIZA_LOG"] = str(LOG)

import _llama_cpp_testing as llama  # noqa: E402
import pytest  # noqa: E402

from tests.support import models  # noqa: E402

MIB = 1 << 20


def allocated(path: str, context_size: int) -> float:
    """MiB of KV cache, as llama.cpp logs them: one line for each part, to two decimals."""
    already = LOG.stat().st_size if LOG.exists() else 0
    llama.Session(path, context_size=context_size)
    lines = LOG.read_text()[already:]
    return sum(map(float, re.findall(r"KV buffer size = +([0-9.]+) MiB", lines)))


@pytest.mark.parametrize("context_size", [1, 256, 700, 2048])
@pytest.mark.parametrize("name", ["tiny_llama_cycle", "tiny_gemma3_cycle", "tiny_gemma4_mtp", "demo"])
def test_the_estimate_is_exact(name, context_size, demo_model):
    path = str(demo_model if name == "demo" else models.text_model(name))
    cells = -(-context_size // 256) * 256
    attention_mask = cells * min(cells, 512) * (4 + 2)  # in f32 and f16
    estimate = llama.cache_bytes(llama.acquire_model(path), context_size) - attention_mask
    assert estimate / MIB == pytest.approx(allocated(path, context_size), abs=0.011)
