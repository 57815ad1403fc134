"""A GGUF model through llama.cpp and, converted, through MLX: the same tokens, greedily, from weights of 32 bits.

The random models' texts mean nothing, so that a wrong norm, a wrong rotation or a row in the wrong place shows in the
first tokens.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from elizainference.convert import gguf_to_mlx

from tests.conformance.common import answer
from tests.support import abi
from tests.support.runfile import runfile

MODELS = [
    "tests/models/tiny_llama_random",
    "tests/models/tiny_gemma3_random",
    "tests/models/tiny_gemma4_mtp",
    "tests/llama_cpp/recall_llama",
    "tests/llama_cpp/recall_gemma3",
]
PROMPTS = ["the quick brown fox", "abc", "xyzA" + "xyz" * 40 + "abc", "0123 %&/ the in er", "a"]


def tokens(bundle: Path, backend: str, monkeypatch) -> list[list[int]]:
    """What a backend generates for each prompt, and the prompts' ids."""
    monkeypatch.setenv("ELIZA_LLM_BACKEND", backend)
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "cpu")
    with abi.Context(bundle) as context:
        generated = [answer(context, prompt, context_size=512)[0] for prompt in PROMPTS]
        return generated + [context.tokenize(prompt) for prompt in PROMPTS]


@pytest.mark.parametrize("model", MODELS)
def test_the_same_tokens(model, tmp_path, monkeypatch):
    name = model.rpartition("/")[2]
    gguf = runfile(model + "_bundle")
    gguf_to_mlx(gguf / "text" / f"{name}.gguf", tmp_path / "text" / name)
    expected = tokens(gguf, "llama.cpp", monkeypatch)
    assert len({tuple(generated) for generated in expected[: len(PROMPTS)]}) > 1
    assert tokens(tmp_path, "mlx-coreml", monkeypatch) == expected
