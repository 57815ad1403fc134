"""The backend's sampler against llama.cpp's, on random logits."""

from __future__ import annotations

import _llama_cpp_testing as llama
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import models

# Coarse, so that ties are common; narrow, so that sampling has something to choose from.
LOGITS = st.integers(-24, 24).map(lambda x: x / 4)
SEEDS = st.integers(0, 2**64 - 1)


@pytest.fixture(scope="module")
def model():
    return llama.acquire_vocabulary(str(models.text_model("tiny_llama_cycle")))


@st.composite
def rows(draw, size: int):
    # Hypothesis need not choose each of 362 logits: a few that it varies, the rest from its random numbers.
    random = draw(st.randoms(use_true_random=False))
    count = draw(st.integers(1, 8))
    base = [[random.randint(-24, 24) / 4 for _ in range(size)] for _ in range(count)]
    for row in base:
        for index, value in draw(st.dictionaries(st.integers(0, size - 1), LOGITS, max_size=8)).items():
            row[index] = value
    return base


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_draws_what_llama_cpp_draws(model, data):
    size = model.vocab_size
    options = llama.SamplerOptions(
        temperature=data.draw(st.sampled_from([0.0, 0.3, 1.0, 1.7])),
        top_k=data.draw(st.sampled_from([0, 1, 5, 40, 10_000])),
        top_p=data.draw(st.sampled_from([1.0, 0.95, 0.5, 0.01])),
        repeat_penalty=data.draw(st.sampled_from([1.0, 1.1, 2.0, 0.5])),
    )
    context = data.draw(st.lists(st.integers(0, size - 1), max_size=100))
    ours, theirs = llama.draw_both(model, data.draw(rows(size)), context, data.draw(SEEDS), options)
    assert ours == theirs


def test_the_first_of_equal_logits_wins(model):
    row = [0.0] * model.vocab_size
    assert llama.draw_both(model, [row], [], 1, llama.SamplerOptions()) == ([0], [0])
    row[5] = row[200] = row[-1] = 3.0
    assert llama.draw_both(model, [row], [], 1, llama.SamplerOptions()) == ([5], [5])


def test_seeds_are_folded_to_all_of_llama_cpps_but_random():
    folded = {llama.fold_seed(seed) for seed in [*range(1000), *(1 << bit for bit in range(64))]}
    assert len(folded) > 1050  # no bit is lost
    assert 0xFFFFFFFF not in folded  # LLAMA_DEFAULT_SEED means random
