"""The session: what a context holds after each call, against what the model says without a session."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import _mlx_session_testing
import _mlx_testing
import pytest

from tests.mlx.golden_test import directory

NAMES = ["gemma3_q4", "gemma4_f32", "llama_f32"]  # windows of 8, shared keys and values, none of it


class Session(_mlx_session_testing.Session):
    """One that is closed with its block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def steps(self, tokens_cap: int = 32, text_cap: int = 1024) -> list:
        """Calls next until the generation ends."""
        steps = [self.next(tokens_cap, text_cap)]
        while not steps[-1][0]:
            steps.append(self.next(tokens_cap, text_cap))
        return steps

    def generate(self) -> list[int]:
        """The tokens of the whole generation."""
        steps = self.steps()
        tokens = [token for _, tokens, _ in steps for token in tokens]
        assert "".join(text for _, _, text in steps) == "".join(f"[{token}]" for token in tokens)
        return tokens


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="session")
def reference():
    """reference(name, prompt, count): the greedy tokens, each from a pass over everything before it."""
    models = {name: _mlx_testing.Model(str(directory(name)), widen=name.endswith("q4")) for name in NAMES}

    def generate(name, prompt, count):
        tokens, model = list(prompt), models[name]
        while len(tokens) < len(prompt) + count:
            model.clear()
            row = model.logits(tokens)[-1]
            tokens.append(row.index(max(row)))
        return tokens[len(prompt) :]

    return generate


def open_session(name: str, **fields) -> Session:
    return Session(str(directory(name)), **({"context_size": 256} | fields))


PROMPT = [1, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50]


# Where the linker lets the tests count (BUILD.bazel).
fed_tokens = getattr(_mlx_session_testing, "fed_tokens", None)
counts_what_is_fed = pytest.mark.skipif(fed_tokens is None, reason="the linker wraps nothing here")


def fails(status: int, call, *arguments) -> str:
    with pytest.raises(RuntimeError) as error:
        call(*arguments)
    assert str(error.value).startswith(f"{status}: ")
    return str(error.value)


def test_greedy_tokens_are_the_models(name, reference):
    with open_session(name, max_tokens=30) as session:
        session.prefill(PROMPT)
        assert session.generate() == reference(name, PROMPT, 30)
        assert session.stats() == {
            "device": "cpu",
            "stop_reason": "max_tokens",
            "prompt_tokens": 12,
            "generated_tokens": 30,
            "kv_used": 42,
            "kv_capacity": 256,
            "ignored_options": [],
        }


def test_a_prefill_in_parts_and_a_second_generation(name, reference):
    with open_session(name, max_tokens=5) as session:
        session.prefill(PROMPT[:3])
        session.prefill(PROMPT[3:])
        first = session.generate()
        assert first == reference(name, PROMPT, 5)
        session.prefill([60, 61])
        assert session.generate() == reference(name, PROMPT + first + [60, 61], 5)


def test_a_prompt_of_several_chunks(reference):
    prompt = [(i * 97 + 5) % 362 for i in range(1100)]
    with open_session("gemma3_q4", max_tokens=3, context_size=1200) as session:
        session.prefill(prompt)
        assert session.generate() == reference("gemma3_q4", prompt, 3)


def test_a_generation_that_is_interrupted_by_a_prefill(name, reference):
    """The token that was computed ahead is not in the context."""
    with open_session(name) as session:
        session.prefill(PROMPT)
        seen = [session.next(1)[1][0] for _ in range(11)]
        session.prefill([60])
        token = session.next(1)[1][0]
        assert [token] == reference(name, PROMPT + seen + [60], 1)


def test_the_end_of_a_generation_is_no_part_of_the_context(name, reference, tmp_path):
    # Some answers of a random model are one token again and again: one of two tokens at least is needed.
    prompts = (PROMPT + [token] for token in range(5, 105))
    prompt, expected = next((p, e) for p in prompts if len(set(e := reference(name, p, 20))) > 1)
    end = max(expected, key=expected.index)  # the one that comes last for the first time
    count = expected.index(end)
    copy = Path(shutil.copytree(directory(name), tmp_path / "model"))
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": [361, end]}))
    with Session(str(copy), context_size=256) as session:
        session.prefill(prompt)
        assert session.generate() == expected[:count]
        assert session.stats()["stop_reason"] == "end_of_generation"
        assert session.stats()["kv_used"] == len(prompt) + count
        session.prefill([60])
        assert session.next(1)[1] == reference(name, prompt + expected[:count] + [60], 1)


def test_settings_that_are_gone_are_not_taken_for_none(tmp_path):
    """Without them a generation might not end."""
    copy = Path(shutil.copytree(directory("llama_f32"), tmp_path / "model"))
    (copy / "generation_config.json").symlink_to("gone")
    assert "generation_config.json: is a link to a file that does not exist" in fails(-3, Session, str(copy))


def test_a_full_context_ends_the_generation(name, reference):
    with open_session(name, context_size=16) as session:
        session.prefill(PROMPT)
        assert session.generate() == reference(name, PROMPT, 4)
        assert session.stats()["stop_reason"] == "context_full"
        assert "only 0 of the context's 16 are free" in fails(-2, session.prefill, [5])
        session.reset()
        session.prefill(range(5, 21))
        assert session.next() == (True, [], "")


def test_a_prompt_that_does_not_fit_changes_nothing(name, reference):
    with open_session(name, max_tokens=4, context_size=24) as session:
        session.prefill(PROMPT)
        first = session.next(1)[1]
        assert "has 20 tokens, but only 11 of the context's 24" in fails(-2, session.prefill, [7] * 20)
        assert first + session.generate() == reference(name, PROMPT, 4)


@pytest.mark.parametrize("token", [-1, 362, 2**31 - 1, -(2**31)])
def test_a_token_that_is_none(token):
    with open_session("llama_f32") as session:
        assert f"token {token} at index 1 is not in the model's vocabulary" in fails(-2, session.prefill, [5, token])
        assert session.stats()["kv_used"] == 0
        assert "before any prefill" in fails(-2, session.next)
        assert "prefill got no tokens" in fails(-2, session.prefill, [])


def test_text_that_does_not_fit_waits(name, reference):
    expected = reference(name, PROMPT, 6)
    with open_session(name, max_tokens=6) as session:
        session.prefill(PROMPT)
        assert session.next(1)[1] == expected[:1]
        assert "needs" in fails(-2, lambda: session.next(1, 2))
        assert session.generate() == expected[1:]
        session.reset()
        session.prefill(PROMPT)
        assert session.next(1)[1] == expected[:1]
        fails(-2, lambda: session.next(1, 2))
        # Nobody saw it: it is not in the context.
        session.prefill([60])
        assert session.next(1)[1] == reference(name, PROMPT + expected[:1] + [60], 1)


# -- Reset ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 9, 20])
def test_no_token_is_lost_where_memory_runs_out(name, nth, reference):
    with open_session(name, max_tokens=20) as session:
        session.prefill(PROMPT)
        _mlx_session_testing.fail_text(nth)
        tokens = []
        while len(tokens) < nth - 1:
            tokens += session.next(1)[1]
        fails(-5, session.next, 1)
        assert tokens + session.generate() == reference(name, PROMPT, 20)


def test_reset_starts_anew(name, reference):
    with open_session(name, max_tokens=6) as session:
        session.prefill([9, 8, 7])
        session.next(1)
        session.reset()
        assert session.stats()["kv_used"] == 0
        assert "before any prefill" in fails(-2, session.next)
        session.prefill(PROMPT)
        assert session.generate() == reference(name, PROMPT, 6)


@pytest.mark.parametrize("keep", [0, 1, 5, 12, 15, 17, 99])
def test_reset_keep_is_a_prefix_or_nothing(name, keep, reference):
    with open_session(name, max_tokens=5) as session:
        session.prefill(PROMPT)
        context = PROMPT + session.generate()
        kept = session.reset_keep(keep)
        assert kept in (min(keep, len(context)), 0)
        if name == "llama_f32":
            assert kept == min(keep, len(context))
        assert session.stats()["kv_used"] == kept
        session.prefill([60, 61])
        assert session.generate() == reference(name, context[:kept] + [60, 61], 5)


def test_reset_keep_of_a_window_that_has_moved_on_keeps_nothing():
    with open_session("gemma3_q4", max_tokens=20) as session:
        session.prefill(PROMPT)
        session.generate()
        assert session.reset_keep(14) == 0
        assert session.stats()["kv_used"] == 0


def test_reset_keep_near_the_end_of_a_prompt_keeps_it(name, reference):
    """A prompt is kept whole until the next token: a chat's last turn can be said again."""
    prompt = [(i * 31 + 7) % 362 for i in range(100)]
    with open_session(name, max_tokens=4) as session:
        session.prefill(prompt)
        assert session.reset_keep(60) == 60
        session.prefill([60])
        assert session.generate() == reference(name, prompt[:60] + [60], 4)


# -- Cancelling -----------------------------------------------------------------------------------


def test_cancel_is_sticky_until_a_reset(name, reference):
    with open_session(name, max_tokens=6) as session:
        session.prefill(PROMPT)
        session.next(1)
        assert session.cancel() == 0
        for _ in range(2):
            fails(-7, session.next)
            fails(-7, session.prefill, [5])
        assert session.stats()["stop_reason"] == "cancelled"
        kept = session.reset_keep(12)
        session.prefill(PROMPT[kept:] + [60])
        assert session.generate() == reference(name, PROMPT + [60], 6)


@counts_what_is_fed
@pytest.mark.parametrize("chunk", [1, 2])
def test_a_cancel_takes_effect_behind_the_chunk_it_comes_in(chunk):
    """Also behind the last one, where nothing is left to be skipped."""
    prompt = [(i * 97 + 5) % 362 for i in range(2 * 512)]
    done = chunk * 512
    with open_session("llama_f32", context_size=1100) as session:
        before = fed_tokens()
        session.cancel_in_chunk(chunk)
        fails(-7, session.prefill, prompt)
        assert fed_tokens() - before == done
        assert session.stats()["kv_used"] == done
        fails(-7, session.next)
        assert session.reset_keep(done) == done
        session.prefill([*prompt[done:], 60])
        after = session.next(1)
    with open_session("llama_f32", context_size=1100) as session:
        session.prefill([*prompt, 60])
        assert session.next(1) == after


@counts_what_is_fed
def test_a_cancelled_prefill_drops_what_waits_once(reference):
    with open_session("llama_f32", max_tokens=4) as session:
        session.prefill(PROMPT)
        context = PROMPT + session.next(1)[1]
        fails(-2, lambda: session.next(1, 2))  # a token waits that nobody has seen
        session.cancel_in_chunk(1)
        fails(-7, session.prefill, [60, 61])
        context += [60, 61]
        assert session.stats()["kv_used"] == len(context)
        assert session.reset_keep(100) == len(context)
        session.prefill([62])
        assert session.generate() == reference("llama_f32", context + [62], 4)


def test_cancels_at_random_moments(reference):
    expected = reference("gemma3_q4", PROMPT, 12)
    with open_session("gemma3_q4", max_tokens=12) as session:
        for delay in range(10):
            timer = threading.Timer(delay * 0.003, session.cancel)
            timer.start()
            try:
                session.prefill(PROMPT)
                session.generate()
            except RuntimeError as error:
                assert str(error).startswith("-7: ")
            timer.join()
            session.reset()
        session.prefill(PROMPT)
        assert session.generate() == expected


# -- Sampling -------------------------------------------------------------------------------------


def sampled(seed: int | None, **fields) -> list[int]:
    with open_session("llama_f32", max_tokens=40, temperature=1.5, **fields) as session:
        if seed is not None:
            session.set_seed(seed)
        session.prefill(PROMPT)
        return session.generate()


def test_a_seed_repeats_and_others_differ():
    assert sampled(1) == sampled(1)
    texts = {tuple(sampled(seed)) for seed in (1, 2, 2**32 + 1, 2**63, None, None)}
    assert len(texts) == 6


def test_a_reset_starts_the_seed_again():
    with open_session("llama_f32", max_tokens=40, temperature=1.5) as session:
        session.set_seed(7)
        texts = []
        for _ in range(2):
            session.prefill(PROMPT)
            texts.append(session.generate())
            session.reset()
        assert texts[0] == texts[1]


def test_a_seed_between_two_tokens_counts_from_the_next_one():
    texts = []
    for _ in range(2):
        with open_session("llama_f32", max_tokens=20, temperature=1.5) as session:
            session.set_seed(len(texts))
            session.prefill(PROMPT)
            session.next(1)
            session.reset_keep(len(PROMPT))
            session.prefill([60])
            session.set_seed(5)
            texts.append(session.generate())
    assert texts[0] == texts[1]


def test_a_repeat_penalty_changes_greedy_text(reference):
    with open_session("llama_f32", max_tokens=30, repeat_penalty=1.8) as session:
        session.prefill(PROMPT)
        penalised = session.generate()
    assert penalised != reference("llama_f32", PROMPT, 30)
    assert len(set(penalised)) > 25


# -- Options, threads -----------------------------------------------------------------------------


def test_what_only_tunes_is_listed_as_ignored():
    fields = {"n_gpu_layers": -1, "draft_max": 4, "cache_type_k": "q8_0", "slot_id": 1, "prompt_cache_key": "chat"}
    with open_session("llama_f32", **fields) as session:
        assert session.stats()["ignored_options"] == ["n_gpu_layers", "draft_max", "cache_type_k", "prompt_cache_key"]


def test_another_value_of_the_device_variable_is_an_error(monkeypatch):
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "npu")
    assert "ELIZA_MLX_DEVICE is 'npu': it takes auto, metal or cpu" in fails(-1, lambda: open_session("llama_f32"))


def test_a_context_that_was_closed_meanwhile():
    assert "the context is closed" in fails(-2, _mlx_session_testing.open_on_a_closed_context)


def test_two_sessions_share_the_weights():
    with open_session("gemma4_f32") as first:
        one = _mlx_session_testing.active_memory()
        with open_session("gemma4_f32") as second:
            assert _mlx_session_testing.active_memory() == one
            first.prefill(PROMPT)
            second.prefill(PROMPT)
            assert first.next(1) == second.next(1)


def test_sessions_on_threads_are_independent(reference):
    expected = {name: reference(name, PROMPT, 15) for name in NAMES}
    results: dict[str, list] = {name: [] for name in NAMES}

    def run(name):
        with open_session(name, max_tokens=15) as session:
            for _ in range(3):
                session.prefill(PROMPT)
                results[name].append(session.generate())
                session.reset()

    threads = [threading.Thread(target=run, args=(name,)) for name in NAMES for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {name: [expected[name]] * 6 for name in NAMES}
