"""Warm KV caches, embeddings and end-of-turn scores: what a context keeps beside its streams."""

from __future__ import annotations

import ctypes
import math
import os
import threading

import pytest

from tests.llama_cpp import recall
from tests.support import abi, models


@pytest.fixture(params=recall.ARCHITECTURES)
def context(request):
    with abi.Context(recall.bundle(request.param)) as context:
        yield context


def ask(context: abi.Context, prompt: str, key: str | None = "chat", slot: int = 0, **config) -> tuple[str, int]:
    """The answer, and how much of the prompt was not decoded again."""
    config = {"max_tokens": 6, "context_size": 256} | config
    with context.open(prompt_cache_key=key, slot_id=slot, **config) as stream:
        assert stream.stats()["kv_used"] == 0
        stream.prefill(context.tokenize(prompt))
        reused = stream.stats()["reused_tokens"]
        return stream.generate(), reused


# --- prompt_cache_key ----------------------------------------------------------------------------


def test_the_next_stream_with_the_key_reuses_the_common_prefix(context):
    assert ask(context, "xxAxxabc") == (recall.text("A", "c", 6), 0)
    # All 9 tokens of the first prompt, and 3 of its answer.
    assert ask(context, "xxAxxabcdefpqr") == (recall.text("A", "r", 6), 12)
    # Another prompt altogether: only the token at the start is common.
    assert ask(context, "Babc") == (recall.text("B", "c", 6), 1)


def test_the_same_prompt_again(context):
    first = ask(context, "xAxabc")
    assert first == (recall.text("A", "c", 6), 0)
    # The last token is decoded again, for its logits.
    assert ask(context, "xAxabc") == (first[0], 6)


def test_other_keys_and_slots_are_others(context):
    ask(context, "Aabc")
    assert ask(context, "Aabc", slot=1)[1] == 0
    assert ask(context, "Aabc", key="other")[1] == 0
    assert ask(context, "Aabc", key=None)[1] == 0
    assert ask(context, "Aabc", slot=-1)[1] == 0
    assert ask(context, "Aabc")[1] == 4


def test_a_context_of_another_size_or_type_is_not_reused(context):
    ask(context, "Aabc")
    assert ask(context, "Aabc", context_size=128) == (recall.text("A", "c", 6), 0)
    assert ask(context, "Aabc", cache_type_k="q8_0") == (recall.text("A", "c", 6), 0)


def test_two_streams_at_once_do_not_share(context):
    ask(context, "Aabc")
    with context.open(prompt_cache_key="chat", slot_id=0, max_tokens=6, context_size=256) as first:
        assert ask(context, "Aabc")[1] == 0
        first.prefill(context.tokenize("Aabc"))
        assert first.stats()["reused_tokens"] == 4
        assert first.generate() == recall.text("A", "c", 6)


def test_a_reset_forgets_what_is_warm(context):
    ask(context, "Aabc")
    with context.open(prompt_cache_key="chat", slot_id=0, max_tokens=6, context_size=256) as stream:
        assert stream.reset_keep(5) == 0  # nothing of this stream's
        stream.prefill(context.tokenize("c"))
        assert stream.stats()["reused_tokens"] == 0
        assert stream.generate() == recall.text("", "c", 6)


def test_a_slot_goes_before_what_is_warm(context, tmp_path):
    ask(context, "Aabc")
    with context.open(prompt_cache_key="chat", slot_id=0, max_tokens=6, context_size=256) as stream:
        slot = os.fsencode(tmp_path / "slot")
        # A failure leaves all as it was, and for its caller the stream is empty.
        with pytest.raises(abi.Error, match="cannot be opened"):
            stream.library.call("llm_stream_restore_slot", stream.handle, slot)
        stream.library.call("llm_stream_save_slot", stream.handle, slot)
        assert stream.stats()["kv_used"] == 0
        stream.prefill(context.tokenize("Aabc"))
        assert stream.stats()["reused_tokens"] == 4
        assert stream.generate() == recall.text("A", "c", 6)
    with context.open(prompt_cache_key="chat", slot_id=0, max_tokens=6, context_size=256) as stream:
        stream.library.call("llm_stream_restore_slot", stream.handle, slot)
        stream.prefill(context.tokenize("Babc"))
        assert stream.stats()["reused_tokens"] == 0
        assert stream.generate() == recall.text("B", "c", 6)


def test_the_least_recently_used_goes_first(context):
    for slot in range(9):
        ask(context, "Aabc", slot=slot)
    assert ask(context, "Aabc", slot=0)[1] == 0
    assert ask(context, "Aabc", slot=8)[1] == 4


def test_a_cancelled_stream_leaves_a_usable_cache(context):
    with context.open(prompt_cache_key="chat", slot_id=0, context_size=256) as stream:
        stream.prefill(context.tokenize("Aabc"))
        stream.cancel()
    assert ask(context, "Aabcpq") == (recall.text("A", "q", 6), 5)


def test_a_window_that_has_moved_on_is_decoded_again():
    with abi.Context(recall.bundle("gemma3")) as context:
        long = "xAx" + "xyz" * 400
        ask(context, long, context_size=2048)
        assert ask(context, "xAxabc", context_size=2048) == (recall.text("A", "c", 6), 0)


# --- embeddings ----------------------------------------------------------------------------------


def embed(context: abi.Context, text: bytes, pooling: int = 1, cap: int = 4096) -> list[float]:
    out, dim = (ctypes.c_float * cap)(), ctypes.c_int(-1)
    assert context.library.call("embed", context.handle, text, len(text), pooling, out, cap, ctypes.byref(dim)) == 0
    return list(out[: dim.value])


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("pooling", [1, 2, 3])
def test_embeddings_are_normalised_and_repeat(pooling):
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        embedding = embed(context, b"abc", pooling)
        assert len(embedding) == 64
        assert math.isclose(dot(embedding, embedding), 1, rel_tol=1e-4)
        assert embed(context, b"abc", pooling) == embedding
        # The first token is the same for each text, and sees no other.
        assert (embed(context, b"xyz", pooling) == embedding) == (pooling == 2)


def test_the_last_token_pools_what_the_stream_sees():
    """Texts that end alike are near each other by their last token, in a model that looks at nothing else."""
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        a, b, c = (embed(context, text, 3) for text in (b"xya", b"pqa", b"xyb"))
        assert math.isclose(dot(a, b), 1, abs_tol=1e-4)
        assert dot(a, c) < 0.6


def test_embeddings_beside_a_stream(context):
    with context.open(max_tokens=6, context_size=256) as stream:
        stream.prefill(context.tokenize("Aabc"))
        text = stream.next(tokens_cap=1).text
        embed(context, b"something else")
        assert text + stream.generate() == recall.text("A", "c", 6)


def test_an_embedding_that_does_not_fit_says_how_long_it_is():
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        out, dim = (ctypes.c_float * 8)(), ctypes.c_int(-1)
        with pytest.raises(abi.Error, match="out_cap is 8, and an embedding has 64 floats") as error:
            context.library.call("embed", context.handle, b"abc", 3, 1, out, 8, ctypes.byref(dim))
        assert error.value.status == abi.INVALID_ARG
        assert dim.value == 64


@pytest.mark.parametrize("pooling", [0, 4, -1])
def test_a_pooling_that_is_none(context, pooling):
    with pytest.raises(abi.Error, match=f"pooling is {pooling}; use 1 .mean., 2 .first token. or 3 .last token."):
        embed(context, b"abc", pooling)


def test_texts_at_the_edge(context):
    assert len(embed(context, b"")) == 192  # the token at the start
    assert len(embed(context, b"a\0b\xff\xfe")) == 192
    assert len(embed(context, b"x" * 2000)) == 192
    with pytest.raises(abi.Error, match="the text has 5001 tokens, and the model embeds at most 4096: split it"):
        embed(context, b"x" * 5000)


# --- end of turn ---------------------------------------------------------------------------------


def score(context: abi.Context, tokens: list[int], target: int) -> tuple[float, int, float]:
    probability, top, top_probability = ctypes.c_float(-1), ctypes.c_int32(-1), ctypes.c_float(-1)
    results = (ctypes.byref(probability), ctypes.byref(top), ctypes.byref(top_probability))
    ids = (ctypes.c_int32 * len(tokens))(*tokens)
    assert context.library.call("llm_eot_score", context.handle, ids, len(tokens), target, *results) == 0
    return probability.value, top.value, top_probability.value


def test_scores_follow_the_text():
    with abi.Context(models.bundle("tiny_llama_end")) as context:  # ends after j
        end = 2
        for text, ends in [("abc", False), ("abcdefghij", True), ("abcdefghi", False), ("xj", True)]:
            probability, top, top_probability = score(context, context.tokenize(text), end)
            assert (top == end) == ends
            assert (probability == top_probability) == ends
            assert 0 < probability <= top_probability <= 1


def test_scores_are_probabilities():
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        tokens = context.tokenize("abc")
        total = sum(score(context, tokens, target)[0] for target in range(362))
        assert math.isclose(total, 1, rel_tol=1e-4)


def test_a_score_depends_on_the_whole_text(context):
    """Whatever was scored before."""
    d, b = (context.tokenize(letter, add_special=False)[0] for letter in "db")
    for _ in range(2):
        for marker, top in [("A", d), ("B", b)]:
            assert score(context, context.tokenize(f"x{marker}xabc"), d)[1] == top


def test_scores_that_cannot_be(context):
    for tokens, target, message in [
        ([], 5, "num_tokens is 0"),
        ([362], 5, "token 362 at index 0"),
        ([5], -1, "token -1"),
        ([5] * 5000, 5, "there are 5000 tokens, and the model reads at most 4096"),
    ]:
        with pytest.raises(abi.Error, match=message) as error:
            score(context, tokens, target)
        assert error.value.status == abi.INVALID_ARG


def test_everything_at_once(context):
    """Streams, embeddings and scores on threads of their own."""
    problems = []

    def check(call, expected) -> None:
        for _ in range(10):
            got = call()
            if got != expected:
                problems.append((got, expected))

    tokens = context.tokenize("Aabc")
    embedding, scored = embed(context, b"abc"), score(context, tokens, 5)
    calls = [
        (lambda: ask(context, "Aabc", key=None)[0], recall.text("A", "c", 6)),
        (lambda: ask(context, "Babc", key=None)[0], recall.text("B", "c", 6)),
        (lambda: embed(context, b"abc"), embedding),
        (lambda: score(context, tokens, 5), scored),
    ]
    threads = [threading.Thread(target=check, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
