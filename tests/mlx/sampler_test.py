"""The sampler's arithmetic against the same in Python, and its draws against the probabilities."""

from __future__ import annotations

import math
from collections import Counter

import _mlx_session_testing
import pytest

LOGITS = [2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -3.0]


def allowed(top_k: int = 0, top_p: float = 1.0) -> set[int]:
    """The tokens that can be drawn from LOGITS, which fall."""
    kept = LOGITS[: top_k or len(LOGITS)]
    total = sum(map(math.exp, kept))
    before, tokens = 0.0, set()
    for token, logit in enumerate(kept):
        if before < top_p:
            tokens.add(token)
        before += math.exp(logit) / total
    return tokens


def shuffled() -> tuple[list[float], list[int]]:
    """LOGITS in another order, and which of them each is."""
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    return [LOGITS[i] for i in order], order


@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.6, 0.05])
@pytest.mark.parametrize("top_k", [0, 1, 3, 5, 8, 100])
def test_only_what_is_allowed_is_drawn(top_k, top_p):
    logits, order = shuffled()
    tokens = _mlx_session_testing.draw(logits, [], 300, top_k=top_k, top_p=top_p, temperature=3.0)
    drawn = {order[token] for token in tokens}
    assert drawn <= allowed(top_k, top_p)
    if len(allowed(top_k, top_p)) <= 5:
        assert drawn == allowed(top_k, top_p)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_probabilities(temperature):
    count = 3000
    tokens = Counter(_mlx_session_testing.draw(LOGITS, [], count, temperature=temperature))
    weights = [math.exp(logit / temperature) for logit in LOGITS]
    for token, weight in enumerate(weights):
        expected = weight / sum(weights)
        spread = math.sqrt(expected * (1 - expected) / count)
        assert abs(tokens[token] / count - expected) < 5 * spread + 1 / count


def test_temperature_0_is_the_first_of_the_largest():
    assert _mlx_session_testing.draw([1.0, 3.0, 3.0, 2.0], [], 5, temperature=0.0) == [1] * 5


def test_draws_repeat_with_a_seed_and_differ_without():
    one, same, other = (_mlx_session_testing.draw(LOGITS, [], 60, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) > 3


def test_a_penalty_divides_what_is_likely_and_multiplies_what_is_not():
    def greedy(logits, recent, penalty):
        return _mlx_session_testing.draw(logits, recent, 1, temperature=0.0, repeat_penalty=penalty)[0]

    assert greedy([2.0, 1.1, -1.0], [0], 2.0) == 1
    assert greedy([2.0, 1.1, -1.0], [0], 1.5) == 0
    assert greedy([-1.0, -1.5], [0], 2.0) == 1
    # Twice in the window, penalised once.
    assert greedy([2.0, 0.9], [0, 0], 2.0) == 0
