"""What comes through the C ABI and the selector is what the llama.cpp session gives that is opened directly."""

from __future__ import annotations

import _llama_cpp_testing as llama
import pytest

from tests.support import abi, models

CONFIGS = [
    {"max_tokens": 100},
    {"max_tokens": 100, "repeat_penalty": 1.3},
    {"max_tokens": 100, "temperature": 0.8, "top_k": 40, "top_p": 0.9},
    {"max_tokens": 0, "context_size": 256},
]
SEED = 2**63 + 7


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", ["tiny_llama_cycle", "tiny_llama_end", "tiny_llama_random"])
def test_tokens(monkeypatch, name, config):
    prompt = [1, *range(20, 60)]
    direct = llama.Session(str(models.text_model(name)), **config)
    direct.set_seed(SEED)
    direct.prefill(prompt)
    expected = direct.generate()
    assert expected

    for backend in (None, "llama.cpp"):  # chosen, and named
        if backend:
            monkeypatch.setenv("ELIZA_LLM_BACKEND", backend)
        with abi.Context(models.bundle(name)) as context, context.open(**config) as stream:
            assert context.library.llm_stream_set_seed(stream.handle, SEED) == abi.OK
            stream.prefill(prompt)
            tokens = [token for step in stream.steps(tokens_cap=7) for token in step.tokens]
        assert tokens == expected
