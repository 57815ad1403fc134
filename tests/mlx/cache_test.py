"""Caches: chunks, single steps, rings and cut ends give what one pass over everything gives."""

from __future__ import annotations

import random

import _mlx_testing
import pytest

from tests.mlx.golden_test import NAMES, directory

WINDOW = 8
TOLERANCE = 1e-4


def prompt(count: int, seed: int = 0) -> list[int]:
    """Some token ids."""
    return [random.Random(seed).randrange(362) for _ in range(1)] + [
        (seed * 31 + i * 97 + 5) % 362 for i in range(count - 1)
    ]


def distance(rows, others) -> float:
    """The largest difference."""
    return max(abs(a - b) for row, other in zip(rows, others, strict=True) for a, b in zip(row, other, strict=True))


@pytest.fixture(scope="module")
def models():
    return {name: _mlx_testing.Model(str(directory(name))) for name in NAMES}


@pytest.fixture(params=NAMES)
def model(request, models):
    models[request.param].clear()
    return models[request.param]


@pytest.mark.parametrize("chunks", [[7, 7, 7, 7], [1] * 28, [8, 1, 8, 1, 1, 9], [20, 1, 1, 6], [2, 9, 1, 1, 1, 14]])
def test_chunks_give_what_one_pass_gives(model, chunks):
    tokens = prompt(28)
    whole = model.logits(tokens)
    model.clear()
    rows, begin = [], 0
    for count in chunks:
        rows += model.logits(tokens[begin : begin + count])
        begin += count
    assert distance(rows, whole) < TOLERANCE


def test_a_window_keeps_what_it_sees(model):
    model.logits(prompt(30))
    for token in prompt(2 * WINDOW, seed=3):
        model.logits([token])
    cached = model.cached_rows()
    assert cached
    for offset, rows in cached:
        assert offset == 30 + 2 * WINDOW
        assert rows in (offset, WINDOW)


@pytest.mark.parametrize("seed", range(12))
def test_random_passes_and_cuts(model, seed):
    """Whatever was done before, the logits are those of the tokens that are left; a cut that cannot be is refused."""
    choose = random.Random(seed)
    tokens: list[int] = []
    for step in range(14):
        if tokens and choose.random() < 0.3:
            keep = choose.randrange(len(tokens) + 1)
            if model.truncate(keep):
                tokens = tokens[:keep]
        if choose.random() < 0.2:
            model.store_and_restore()
        more = prompt(choose.choice([1, 1, 1, 2, 5, 11]), seed=100 * seed + step)
        rows = model.logits(more)
        tokens += more
        assert all(offset == len(tokens) for offset, _ in model.cached_rows())
    fresh = _reference(model, tokens, len(more))
    assert distance(rows, fresh) < TOLERANCE


def _reference(model, tokens, count):
    model.clear()
    return model.logits(tokens)[-count:]


def test_the_last_token_can_be_taken_back(model):
    """Also where a ring has written over its oldest row: the one before is not seen from there."""
    model.logits(prompt(12))
    for token in prompt(9, seed=1):
        model.logits([token])
    assert model.truncate(20)
    row = model.logits([17])
    tokens = prompt(12) + prompt(9, seed=1)[:8] + [17]
    assert distance(row, _reference(model, tokens, 1)) < TOLERANCE


def test_what_a_ring_has_lost_is_not_kept(models):
    model = models["gemma3_f32"]
    model.clear()
    for token in prompt(30):
        model.logits([token])
    assert not model.truncate(20)
    assert model.truncate(0)
    assert model.cached_rows() == [(0, 0)] * 4
    model = models["llama_f32"]
    model.clear()
    for token in prompt(30):
        model.logits([token])
    assert model.truncate(20)


def test_equal_over_a_step_in_which_buffers_grow(models):
    """Full caches grow by 256 rows."""
    model = models["llama_f32"]
    model.clear()
    tokens = prompt(270)
    whole = model.logits(tokens)[-16:]
    model.clear()
    model.logits(tokens[:254])
    rows = [model.logits([token])[0] for token in tokens[254:]]
    assert distance(rows, whole) < TOLERANCE
