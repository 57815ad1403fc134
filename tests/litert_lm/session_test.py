"""A stream of LiteRT-LM, held against what the library itself says."""

from __future__ import annotations

import os
import threading

import pytest

from tests.litert_lm.runtime import Runtime
from tests.support import abi
from tests.support.runfile import runfile
from tests.support.waiting import until_idle

PROMPTS = [
    "hello world the quick brown",
    "what is your name",
    "I am Eliza a small model",
    "<start_of_turn>user\nhello<end_of_turn>\n<start_of_turn>model\n",
    "h\u00e9llo \U0001f600 w\u00f6rld",
]
PROMPT = PROMPTS[0]


@pytest.fixture(scope="module")
def runtime():
    """The library, without ours around it."""
    return Runtime(runfile(os.environ["LITERT_LM"]))


@pytest.fixture
def reference(runtime, bundle):
    """What the library generates after some texts, prefilled one by one."""

    def generate(*texts: str, max_tokens: int = 0) -> list[str]:
        with (
            runtime.engine(bundle / "text" / "tiny_gemma3.litertlm") as engine,
            engine.session(max_tokens) as session,
        ):
            for text in texts:
                session.prefill(text)
            return session.decode()

    return generate


def _shown(chunks: list[str]) -> str:
    """The text of chunks as this library shows it: a NUL, which ends a C string, as U+FFFD."""
    return "".join(chunk or "\ufffd" for chunk in chunks)


def _generate(context: abi.Context, *texts: str, **options) -> str:
    with context.open(**options) as stream:
        for i, text in enumerate(texts):
            stream.prefill(context.tokenize(text, add_special=i == 0, parse_special=True))
        return stream.generate()


# -- Text and counts ------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("max_tokens", [0, 1, 40])
def test_text_is_the_librarys_own(context, reference, prompt, max_tokens):
    expected = _shown(reference(prompt, max_tokens=max_tokens))
    assert expected
    assert _generate(context, prompt, max_tokens=max_tokens) == expected


@pytest.mark.parametrize("caps", [(1, 64), (3, 8), (32, 1024), (256, 65536)])
def test_caps_change_nothing_but_the_pieces(context, reference, caps):
    with context.open(max_tokens=60) as stream:
        stream.prefill(context.tokenize(PROMPT))
        steps = stream.steps(*caps)
    assert all(len(step.tokens) <= caps[0] for step in steps)
    assert "".join(step.text for step in steps) == _shown(reference(PROMPT, max_tokens=60))


@pytest.mark.parametrize("prompt", PROMPTS)
def test_counts_are_those_of_the_library(context, runtime, bundle, prompt):
    """All but what it holds back at the end, because it could begin a stop sequence, and drops."""
    longest_stop = 3
    model = bundle / "text" / "tiny_gemma3.litertlm"
    with runtime.engine(model, benchmark=True) as engine, engine.session(max_tokens=100) as session:
        session.prefill(prompt)
        session.decode()
        decoded = session.decoded_tokens()
    with context.open(max_tokens=100) as stream:
        stream.prefill(context.tokenize(prompt, parse_special=True))
        tokens = [token for step in stream.steps() for token in step.tokens]
        assert decoded - longest_stop < len(tokens) <= decoded
        assert stream.stats()["generated_tokens"] == len(tokens)


def test_ids_are_those_of_the_text(context):
    with context.open(max_tokens=60) as stream:
        stream.prefill(context.tokenize(PROMPT))
        steps = stream.steps(tokens_cap=1)
    assert context.detokenize([token for step in steps for token in step.tokens]) == "".join(s.text for s in steps)


def test_stop_reasons(context):
    with context.open(max_tokens=5) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        assert stream.stats()["stop_reason"] == "max_tokens"
    with context.open(context_size=64) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        stats = stream.stats()
        assert stats["stop_reason"] == "context_full"
        assert stats["kv_capacity"] == 64
        assert 56 < stats["kv_used"] <= 64


def test_a_last_token_that_the_library_drops_still_ends_by_max_tokens(context, reference):
    """With 12 tokens the last is a "!", with which a stop sequence of the model begins: the library holds it back."""
    assert len(reference(PROMPT, max_tokens=12)) == 11
    with context.open(max_tokens=12) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        assert stream.stats()["stop_reason"] == "max_tokens"


def test_a_stop_sequence_ends_a_generation(context):
    with context.open(temperature=1.5, max_tokens=400) as stream:
        for seed in range(40):
            stream.reset()
            assert stream.library.llm_stream_set_seed(stream.handle, seed) == abi.OK
            stream.prefill(context.tokenize(PROMPT))
            stream.generate()
            if stream.stats()["stop_reason"] == "end_of_generation":
                assert stream.stats()["generated_tokens"] < 400
                return
    pytest.fail("no generation of 40 came to an end of its own")


def test_next_before_a_prefill_and_after_the_end(context):
    with context.open(max_tokens=3) as stream:
        with pytest.raises(abi.Error, match="next was called before any prefill"):
            stream.next()
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        again = stream.next()
        assert (again.ended, again.tokens, again.text) == (True, [], "")


def test_text_that_does_not_fit_waits(context, reference):
    prompt = PROMPTS[1]
    expected = _shown(reference(prompt, max_tokens=20))
    with context.open(max_tokens=20) as stream:
        stream.prefill(context.tokenize(prompt))
        with pytest.raises(abi.Error, match="text_cap is 1, but"):
            for _ in range(20):
                assert stream.next(text_cap=1).text == ""
        assert stream.generate() == expected


# -- The context ----------------------------------------------------------------------------------


def test_a_second_turn_goes_on(context, reference):
    """The context is the prompt, the text, and the second prompt: as the library makes it when it is prefilled so."""
    with context.open(max_tokens=8) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        stream.prefill(context.tokenize(" jumps", add_special=False))
        second = stream.generate()
        used = stream.stats()["kv_used"]
    with context.open(max_tokens=8) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        stream.prefill(context.tokenize(" jumps", add_special=False))
        assert stream.generate() == second
        assert stream.stats()["kv_used"] == used


def test_what_was_not_delivered_is_not_in_the_context(context):
    """A client that stops early, at a stop string of its own, and goes on, has the context that it has seen."""
    texts = []
    for pulled, max_tokens in [(4, 4), (4, 200)]:
        with context.open(max_tokens=max_tokens) as stream:
            stream.prefill(context.tokenize(PROMPT))
            first = [stream.next(tokens_cap=1) for _ in range(pulled)]
            assert sum(len(step.tokens) for step in first) == pulled
            stream.prefill(context.tokenize(" jumps over", add_special=False))
            steps = [stream.next(tokens_cap=1) for _ in range(4)]
            texts.append("".join(step.text for step in [*first, *steps]))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("split", [1, 2, 4])
def test_a_prompt_in_parts_is_the_prompt(context, split):
    tokens = context.tokenize(PROMPT)
    with context.open(max_tokens=10) as stream:
        stream.prefill(tokens[:split])
        stream.prefill(tokens[split:])
        assert stream.generate() == _generate(context, PROMPT, max_tokens=10)


def test_the_start_token_is_there_once(context, reference):
    """Given or not: the library puts it there."""
    with_start = context.tokenize(PROMPT)
    without = context.tokenize(PROMPT, add_special=False)
    assert with_start[1:] == without
    texts, used = [], []
    for tokens in (with_start, without):
        with context.open(max_tokens=10) as stream:
            stream.prefill(tokens)
            used.append(stream.stats()["kv_used"])
            texts.append(stream.generate())
    assert texts == [_shown(reference(PROMPT, max_tokens=10))] * 2
    assert used == [len(with_start)] * 2


def test_the_start_token_alone_is_a_prompt(context, reference):
    with context.open(max_tokens=10) as stream:
        stream.prefill(context.tokenize(""))
        assert stream.generate() == _shown(reference("", max_tokens=10))


@pytest.mark.parametrize("keep", [1, 2, 5, 6])
def test_reset_keep_keeps_a_part_of_the_prompt(context, keep):
    tokens = context.tokenize(PROMPT)
    assert len(tokens) == 6
    tail = context.tokenize(" over the lazy dog", add_special=False)
    with context.open(max_tokens=20) as stream:
        stream.prefill(tokens)
        stream.generate()
        assert stream.reset_keep(keep) == keep
        stream.prefill(tail)
        kept = stream.generate()
    with context.open(max_tokens=20) as stream:
        stream.prefill(tokens[:keep])
        stream.prefill(tail)
        assert stream.generate() == kept


def test_reset_keep_keeps_a_part_of_the_answer(context):
    tail = context.tokenize(" jumps", add_special=False)
    tokens = context.tokenize(PROMPT)
    with context.open(max_tokens=4) as stream:
        stream.prefill(tokens)
        assert sum(len(step.tokens) for step in stream.steps()) == 4
        stream.prefill(tail)
        expected = stream.generate()
    with context.open(max_tokens=30) as stream:
        stream.prefill(tokens)
        stream.generate()
        assert stream.reset_keep(len(tokens) + 4) == len(tokens) + 4
        stream.prefill(tail)
        assert "".join(stream.next(tokens_cap=1).text for _ in range(4)) == expected


@pytest.mark.parametrize("keep", [0, 1000])
def test_reset_keep_of_nothing_and_of_more_than_there_is(context, keep):
    tokens = context.tokenize(PROMPT)
    with context.open(max_tokens=5) as stream:
        stream.prefill(tokens)
        assert stream.reset_keep(keep) == min(keep, len(tokens))
        assert stream.stats()["kv_used"] == min(keep, len(tokens))


def test_reset_begins_anew(context, reference):
    with context.open(max_tokens=10) as stream:
        stream.prefill(context.tokenize(PROMPTS[1]))
        stream.next()
        stream.reset()
        assert stream.stats() | {"prefill_ms": 0, "decode_ms": 0} == {
            "backend": "litert-lm",
            "device": "cpu",
            "stop_reason": "",
            "prompt_tokens": 0,
            "reused_tokens": 0,
            "generated_tokens": 0,
            "drafted_tokens": 0,
            "accepted_tokens": 0,
            "kv_used": 0,
            "kv_capacity": 512,
            "prefill_ms": 0,
            "decode_ms": 0,
            "ignored_options": [],
        }
        stream.prefill(context.tokenize(PROMPT))
        assert stream.generate() == _shown(reference(PROMPT, max_tokens=10))


def test_a_prompt_fills_the_context_but_for_one_token(context):
    (token,) = context.tokenize("hello", add_special=False)
    start = context.tokenize("")
    with context.open() as stream:
        with pytest.raises(abi.Error, match="the prompt has 512 tokens, but only 511 of the context's 512 are free"):
            stream.prefill(start + [token] * 511)
        stream.prefill(start + [token] * 510)
        assert len([token for step in stream.steps() for token in step.tokens]) <= 1
        assert stream.stats()["stop_reason"] in ("context_full", "end_of_generation")
        with pytest.raises(abi.Error, match="the prompt has 1 tokens, but only 0"):
            stream.prefill([token])


def test_context_sizes(context, monkeypatch):
    for options, variable, expected in [({"context_size": 64}, "128", 64), ({}, "128", 128), ({}, None, 512)]:
        with monkeypatch.context() as scope:
            if variable:
                scope.setenv("ELIZA_CONTEXT_SIZE", variable)
            with context.open(**options) as stream:
                assert stream.stats()["kv_capacity"] == expected
    with context.open(context_size=100_000) as stream:
        assert stream.stats()["kv_capacity"] == 512, "the model has no more, and the library would not say so"


# -- Sampling -------------------------------------------------------------------------------------


def test_a_seed_repeats_a_generation_and_another_does_not(context):
    texts = []
    for seed in (1, 1, 2):
        with context.open(temperature=1.5, max_tokens=30) as stream:
            stream.library.llm_stream_set_seed(stream.handle, seed)
            stream.prefill(context.tokenize(PROMPT))
            texts.append(stream.generate())
    assert texts[0] == texts[1] != texts[2]


def test_a_seed_counts_until_the_first_next(context):
    texts = []
    for first in (True, False):
        with context.open(temperature=1.5, max_tokens=30) as stream:
            if first:
                stream.library.llm_stream_set_seed(stream.handle, 7)
            stream.prefill(context.tokenize(PROMPT))
            if not first:
                stream.library.llm_stream_set_seed(stream.handle, 7)
            texts.append(stream.generate())
    assert texts[0] == texts[1]


def test_without_a_seed_streams_differ(context):
    assert len({_generate(context, PROMPT, temperature=1.5, max_tokens=30) for _ in range(4)}) > 1


def test_top_k_of_one_is_greedy(context, reference):
    text = _generate(context, PROMPT, temperature=2.0, top_k=1, max_tokens=30)
    assert text == _shown(reference(PROMPT, max_tokens=30))


# -- What it does not do --------------------------------------------------------------------------


def test_options_that_only_tune_are_ignored_and_named(context):
    options = {
        "repeat_penalty": 1.5,
        "prompt_cache_key": "key",
        "slot_id": 0,
        "draft_max": 4,
        "n_gpu_layers": -1,
        "cache_type_k": "q8_0",
        "cache_type_v": "q8_0",
    }
    with context.open(**options) as stream:
        assert set(stream.stats()["ignored_options"]) == options.keys() - {"slot_id"}


@pytest.mark.parametrize(
    "options", [{"gbnf_grammar": 'root ::= "a"'}, {"draft_max": 4, "mtp_drafter_path": "mtp/drafter.gguf"}]
)
def test_options_that_change_the_answer_are_refused(context, monkeypatch, options):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    with pytest.raises(abi.Error) as caught:
        context.open(**options)
    assert "litert-lm cannot do what this stream asks for: LiteRT-LM " in caught.value.message
    assert next(name for name in options if name != "draft_max") in caught.value.message


def test_slots_are_refused(context, tmp_path):
    with context.open() as stream:
        for function in ("llm_stream_save_slot", "llm_stream_restore_slot"):
            with pytest.raises(abi.Error, match="backend cannot"):
                stream.library.call(function, stream.handle, os.fsencode(tmp_path / "slot"))


def test_embeddings_and_scores_are_not_implemented(context):
    out, dimension = (abi.c_float * 64)(), abi.c_int()
    with pytest.raises(abi.Error, match="^-1: litert-lm, .* has no embeddings") as caught:
        context.library.call("embed", context.handle, b"abc", 3, 1, out, 64, abi.byref(dimension))
    assert caught.value.status == abi.NOT_IMPLEMENTED
    tokens, numbers = (abi.c_int32 * 1)(300), [abi.c_float(), abi.c_int32(), abi.c_float()]
    with pytest.raises(abi.Error, match="^-1: litert-lm, .* has no end-of-turn scores") as caught:
        context.library.call("llm_eot_score", context.handle, tokens, 1, 1, *map(abi.byref, numbers))
    assert caught.value.status == abi.NOT_IMPLEMENTED


# -- Side by side ---------------------------------------------------------------------------------


def test_two_streams_taking_turns_on_one_thread(context, reference):
    """The library has one thread for both: a stream that waits for its client may not keep the other one waiting."""
    with context.open(max_tokens=200) as first, context.open(max_tokens=200) as second:
        first.prefill(context.tokenize(PROMPTS[0]))
        texts = [first.next(tokens_cap=1).text, ""]
        second.prefill(context.tokenize(PROMPTS[1]))
        steps = [None, None]
        while not all(step is not None and step.ended for step in steps):
            for i, stream in enumerate((first, second)):
                steps[i] = stream.next(tokens_cap=1)
                texts[i] += steps[i].text
    assert texts == [_shown(reference(prompt, max_tokens=200)) for prompt in PROMPTS[:2]]


def test_a_stream_goes_on_while_another_is_held_back(context, reference):
    """Also for its place in the context the library would let it wait for the other one's client."""
    tail = context.tokenize(" jumps", add_special=False)
    with context.open() as held, context.open(max_tokens=10) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()
        held.prefill(context.tokenize(PROMPTS[1]))
        text = held.next(tokens_cap=1).text
        until_idle()  # it has filled its queue
        assert stream.reset_keep(4) == 4
        stream.prefill(tail)
        stream.generate()
        stream.prefill(tail)
        stream.generate()
        assert text + held.generate() == _shown(reference(PROMPTS[1]))


def test_streams_on_threads(context, reference):
    texts = [None] * 4

    def run(i: int) -> None:
        texts[i] = _generate(context, PROMPTS[i % 2], max_tokens=100)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [_shown(reference(prompt, max_tokens=100)) for prompt in PROMPTS[:2]] * 2
