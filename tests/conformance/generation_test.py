"""prefill and next: tokens, texts, caps and ends."""

from __future__ import annotations

import re

import pytest

from tests.conformance.common import PROMPT, answer, refused, run
from tests.llama_cpp import recall
from tests.support import abi, models


def test_this_backend_answers(context, backend):
    with context.open(max_tokens=4, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        assert stream.stats()["backend"] == backend.name
        assert stream.stats()["device"] == backend.device


def test_greedy_repeats(context):
    tokens, text = answer(context)
    assert len(tokens) == 24
    assert answer(context) == (tokens, text)


def test_the_text_is_that_of_the_tokens(context):
    tokens, text = answer(context, max_tokens=60)
    assert text == context.detokenize(tokens)


@pytest.mark.parametrize(("tokens_cap", "text_cap"), [(1, 64), (1, 4096), (3, 64), (256, 64), (256, 4096)])
def test_caps_change_nothing_but_the_pieces(context, tokens_cap, text_cap):
    expected = answer(context, max_tokens=60)
    with context.open(max_tokens=60, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        assert run(stream, tokens_cap=tokens_cap, text_cap=text_cap) == expected


def test_text_that_does_not_fit_waits_and_nothing_is_lost(context):
    """A buffer for one byte and its NUL; where a piece needs more, the error says how much."""
    expected = answer(context, max_tokens=60)
    tokens, text, told = [], "", 0
    with context.open(max_tokens=60, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        ended, cap = False, 2
        while not ended:
            try:
                step = stream.next(text_cap=cap)
            except abi.Error as error:
                assert error.status == abi.INVALID_ARG
                needed = int(re.search(r"needs (\d+) bytes", error.message)[1])
                assert needed > cap
                cap, told = needed, told + 1
                continue
            tokens += step.tokens
            text += step.text
            ended, cap = step.ended, 2
    assert (tokens, text) == expected
    assert told > 0


def test_no_room_at_all_is_an_error_that_changes_nothing(context):
    expected = answer(context)
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        for caps in ({"tokens_cap": 0}, {"text_cap": 0}):
            with refused(abi.INVALID_ARG):
                stream.next(**caps)
        assert run(stream) == expected


@pytest.mark.parametrize("tokens_cap", [1, 2, 256])
def test_characters_come_whole(backend, tokens_cap):
    """A byte a token: what an emoji's first three bring is nothing."""
    bundle = backend.bundle("utf8")
    if bundle is None:
        # Its only model spells no characters out: that no step's text is half of one is checked by every `next`.
        return
    with abi.Context(bundle) as context, context.open(max_tokens=30, context_size=256) as stream:
        stream.prefill(context.tokenize("a"))
        steps = stream.steps(tokens_cap=tokens_cap)
        assert sum(len(step.tokens) for step in steps) == 30
        text = "".join(step.text for step in steps)
        assert text.startswith(models.utf8("a", 14))
        if tokens_cap == 1:
            assert [step.text for step in steps[:5]] == ["", "", "", "😀", "b"]


def test_a_character_that_the_end_cuts_is_flushed(backend):
    bundle = backend.bundle("utf8")
    if bundle is None:
        return
    with abi.Context(bundle) as context, context.open(max_tokens=3, context_size=256) as stream:
        stream.prefill(context.tokenize("a"))
        assert stream.generate() == "\ufffd"


def test_max_tokens_counts_per_generation(context):
    with context.open(max_tokens=5, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        first, _ = run(stream)
        assert len(first) == 5
        assert stream.stats()["stop_reason"] == "max_tokens"
        for _ in range(2):
            step = stream.next()
            assert step.ended and step.tokens == [] and step.text == ""
        stream.prefill(context.tokenize(" jumps", add_special=False))
        second, _ = run(stream)
        assert len(second) == 5
        assert stream.stats()["generated_tokens"] == 10


def test_without_max_tokens_the_context_is_the_bound(context):
    with context.open(context_size=64) as stream:
        prompt = context.tokenize(PROMPT)
        stream.prefill(prompt)
        tokens, _ = run(stream)
        assert 0 < len(tokens) <= 64 - len(prompt) + 1
        assert stream.stats()["stop_reason"] == "context_full"
        assert stream.next().ended


def test_the_end_of_a_generation(backend):
    bundle = backend.bundle("end")
    if bundle is None:
        return
    with abi.Context(bundle) as context, context.open(max_tokens=50, context_size=256) as stream:
        for _ in range(2):
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == "defghij"
            assert stream.stats()["stop_reason"] == "end_of_generation"
            assert stream.next() == abi.Step(True, [], "", 0, 0)


def test_next_before_any_prefill(context):
    with context.open(max_tokens=5, context_size=256) as stream:
        for _ in range(2):
            with refused(abi.INVALID_ARG, "before any prefill"):
                stream.next()
            stream.prefill(context.tokenize(PROMPT))
            stream.generate()
            stream.reset()


def test_a_prompt_in_parts_is_the_prompt(context):
    prompt = context.tokenize(PROMPT)
    expected = answer(context, prompt)
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(prompt[:1])
        stream.prefill(prompt[1:4])
        stream.prefill(prompt[4:])
        assert run(stream) == expected


def test_the_model_sees_the_whole_prompt(backend):
    """A model that remembers a letter, and one that would not is not asked."""
    bundle = backend.bundle("recall")
    if bundle is None:
        return
    with abi.Context(bundle) as context:
        for marker in ("A", "B", ""):
            _, text = answer(context, f"xy{marker}" + "xyz" * 40 + "abc", max_tokens=10)
            assert text == recall.text(marker, "c", 10)


@pytest.mark.parametrize("token", [-1, 2**31 - 1, -(2**31)])
def test_a_token_that_is_none(context, backend, token):
    expected = answer(context)
    with context.open(max_tokens=24, context_size=256) as stream:
        prompt = context.tokenize(PROMPT)
        with refused(abi.INVALID_ARG, f"token {token} at index 2"):
            stream.prefill([*prompt[:2], token])
        with refused(abi.INVALID_ARG, f"token {backend.vocabulary} at index 0"):
            stream.prefill([backend.vocabulary])
        stream.prefill(prompt)
        assert run(stream) == expected


def test_statistics(context):
    prompt = context.tokenize(PROMPT)
    with context.open(max_tokens=8, context_size=256) as stream:
        before = stream.stats()
        assert before["prompt_tokens"] == before["generated_tokens"] == before["kv_used"] == 0
        assert before["stop_reason"] == ""
        stream.prefill(prompt)
        run(stream)
        after = stream.stats()
    assert set(before) == set(after)
    assert after["prompt_tokens"] == len(prompt)
    assert after["generated_tokens"] == 8
    assert len(prompt) + 7 <= after["kv_used"] <= len(prompt) + 8
    assert after["kv_capacity"] == 256
    assert after["drafted_tokens"] == after["accepted_tokens"] == 0
    assert after["prefill_ms"] > 0 and after["decode_ms"] > 0
    assert after["ignored_options"] == []
