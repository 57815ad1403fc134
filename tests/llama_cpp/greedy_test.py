"""The session's tokens are those of a loop written straight on llama.h."""

from __future__ import annotations

import _llama_cpp_testing as llama
import pytest

from tests.support import models

TINY = ["tiny_llama_cycle", "tiny_llama_random", "tiny_gemma3_cycle", "tiny_gemma3_random", "tiny_llama_end"]
PROMPT = [1, *range(20, 60), 330, 331]


def session_tokens(path, prompt: list[int], **config) -> list[int]:
    session = llama.Session(str(path), **{"context_size": 1024} | config)
    session.prefill(prompt)
    return session.generate()


@pytest.mark.parametrize("name", TINY)
def test_greedy(name):
    path = models.text_model(name)
    plain = llama.plain_generation(str(path), PROMPT, 100)
    assert session_tokens(path, PROMPT, max_tokens=100) == plain
    assert plain  # not two empty lists


def test_greedy_on_a_real_model(demo_model):
    prompt = [1, 504, 3575, 282, 4649, 314]  # "The capital of France is", roughly: any ids will do
    plain = llama.plain_generation(str(demo_model), prompt, 64)
    assert session_tokens(demo_model, prompt, max_tokens=64) == plain
    assert len(plain) == 64


def test_greedy_with_a_repeat_penalty(demo_model):
    prompt = [1, 504, 3575, 282, 4649, 314]
    options = llama.SamplerOptions(repeat_penalty=1.3)
    plain = llama.plain_generation(str(demo_model), prompt, 64, options=options)
    assert session_tokens(demo_model, prompt, max_tokens=64, repeat_penalty=1.3) == plain
    assert plain != llama.plain_generation(str(demo_model), prompt, 64)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.8},
        {"temperature": 1.0, "top_k": 40},
        {"temperature": 1.2, "top_p": 0.9},
        {"temperature": 0.7, "top_k": 20, "top_p": 0.95, "repeat_penalty": 1.1},
    ],
)
def test_sampled(demo_model, options):
    prompt = [1, 504, 3575, 282, 4649, 314]
    seed = 2**40 + 7
    session = llama.Session(str(demo_model), max_tokens=48, context_size=1024, **options)
    session.set_seed(seed)
    session.prefill(prompt)
    plain = llama.plain_generation(
        str(demo_model), prompt, 48, options=llama.SamplerOptions(seed=llama.fold_seed(seed), **options)
    )
    assert session.generate() == plain


@pytest.mark.parametrize("length", [511, 512, 513, 1025, 1500])
def test_a_prompt_in_chunks_is_a_prompt_at_once(length):
    """The session decodes 512 tokens at a time, the plain loop all of them."""
    path = models.text_model("tiny_llama_cycle")
    prompt = [1] + [331 + i % 26 for i in range(length - 1)]
    plain = llama.plain_generation(str(path), prompt, 30, n_ctx=2048)
    assert session_tokens(path, prompt, max_tokens=30, context_size=2048) == plain
