"""Speculative decoding changes how fast a text comes, and nothing else; what it counts and reports is true."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field

import pytest

from tests.llama_cpp import recall
from tests.models import make_tiny_gguf, vocabulary
from tests.support import abi, models
from tests.support.isolated import isolated


def stats(stream: abi.Stream) -> dict:
    return json.loads(stream.library.call_for_string("llm_stream_stats", stream.handle))


@dataclass
class Events:
    """Collects verifier events; as a context manager it is the callback of a context."""

    context: abi.Context
    events: list[tuple[list[int], int, int, list[int]]] = field(default_factory=list)

    def __enter__(self) -> Events:
        @abi.VerifierCallback
        def callback(event, _):
            e = event.contents
            accepted = e.accepted_token_ids[: e.n_accepted]
            corrected = e.corrected_token_ids[: e.n_corrected]
            self.events.append((accepted, e.rejected_from, e.rejected_to, corrected))

        self._callback = callback
        self.context.library.call("set_verifier_callback", self.context.handle, callback, None)
        return self

    def __exit__(self, *_) -> None:
        self.context.library.call("set_verifier_callback", self.context.handle, abi.VerifierCallback(), None)


def generate(context: abi.Context, prompt: str, drafter, draft_max: int = 4, **config) -> tuple[str, list[abi.Step]]:
    config = {"max_tokens": 40, "context_size": 256, "mtp_drafter_path": str(drafter)} | config
    with context.open(draft_max=draft_max, **config) as stream:
        stream.prefill(context.tokenize(prompt))
        steps = stream.steps()
        counted = stats(stream)
        assert counted["drafted_tokens"] == sum(step.drafted for step in steps)
        assert counted["accepted_tokens"] == sum(step.accepted for step in steps)
        return "".join(step.text for step in steps), steps


def test_it_is_supported():
    assert abi.load().llm_mtp_supported() == 1


# --- plain draft models --------------------------------------------------------------------------


@pytest.mark.parametrize("draft_max", [1, 2, 4, 7, 16])
@pytest.mark.parametrize("name", ["tiny_llama_cycle", "tiny_gemma3_cycle"])
def test_a_model_that_drafts_for_itself_is_always_right(name, draft_max):
    with abi.Context(models.bundle(name)) as context:
        text, steps = generate(context, "abc", models.text_model(name), draft_max)
        assert text == models.alphabet("c", 40)
        assert all(step.accepted == step.drafted for step in steps)
        # The first token comes from the prefill; then draft_max and one more at a time.
        assert [len(step.tokens) for step in steps[:3]] == [1, draft_max + 1, min(draft_max + 1, 40 - 2 - draft_max)]


@pytest.mark.parametrize("architecture", recall.ARCHITECTURES)
@pytest.mark.parametrize(("marker", "right"), [("A", True), ("B", False), ("", False)])
def test_a_drafter_that_is_right_or_wrong(architecture, marker, right):
    """The drafter knows the alphabet forwards only."""
    drafter = models.text_model("tiny_llama_cycle")
    with abi.Context(recall.bundle(architecture)) as context:
        text, steps = generate(context, f"x{marker}xabc", drafter, max_tokens=24)
        assert text == recall.text(marker, "c", 24)
        assert sum(step.drafted for step in steps) > 0
        accepted = sum(step.accepted for step in steps)
        assert accepted == sum(step.drafted for step in steps) if right else accepted == 0


def test_the_drafter_follows_resets_slots_and_further_prompts(tmp_path):
    drafter = str(models.text_model("tiny_llama_cycle"))
    slot = str(tmp_path / "slot").encode()
    with abi.Context(recall.bundle("llama")) as context:
        with context.open(max_tokens=12, context_size=256, mtp_drafter_path=drafter, draft_max=4) as stream:

            def check(text: str, marker: str, add_special: bool = True) -> None:
                stream.prefill(context.tokenize(text, add_special=add_special))
                assert stream.generate() == recall.text(marker, text, 12)

            check("xAxabc", "A")
            check("pq", "A", add_special=False)
            assert stream.reset_keep(4) == 4
            check("st", "A", add_special=False)
            stream.library.call("llm_stream_save_slot", stream.handle, slot)
            stream.reset()
            check("Bxyz", "B")
            stream.library.call("llm_stream_restore_slot", stream.handle, slot)
            check("mn", "A", add_special=False)
            stream.cancel()
            stream.reset()
            check("abc", "")


def test_with_a_warm_cache():
    drafter = str(models.text_model("tiny_llama_cycle"))
    with abi.Context(recall.bundle("llama")) as context:
        for prompt in ["xAxabc", "xAxabcdefpq", "xAxB"]:
            config = {"max_tokens": 8, "context_size": 256, "prompt_cache_key": "k", "slot_id": 0}
            with context.open(mtp_drafter_path=drafter, draft_max=4, **config) as stream:
                stream.prefill(context.tokenize(prompt))
                text = stream.generate()
            with context.open(max_tokens=8, context_size=256) as stream:
                stream.prefill(context.tokenize(prompt))
                assert stream.generate() == text


# --- MTP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draft_max", [1, 3, 4, 8])
def test_mtp(draft_max):
    name = "tiny_gemma4_mtp"
    with abi.Context(models.bundle(name)) as context:
        text, steps = generate(context, "abc", models.drafter(name), draft_max)
        assert text == models.alphabet("c", 40)
        assert all(step.accepted == step.drafted for step in steps)
        assert len(steps) <= 2 + 40 // (draft_max + 1) + 1


def test_mtp_that_is_wrong_after_e_and_k():
    name = "tiny_gemma4_mtp_wrong"
    with abi.Context(models.bundle(name)) as context, Events(context) as events:
        text, steps = generate(context, "abc", models.drafter(name), max_tokens=60)
        assert text == models.alphabet("c", 60)
    tokens = [token for step in steps for token in step.tokens]
    drafted = sum(step.drafted for step in steps)
    accepted = sum(step.accepted for step in steps)
    assert 0 < accepted < drafted

    # The events tell the same story, step by step.
    speculative = [step for step in steps if step.drafted]
    assert len(events.events) == len(speculative)
    position = 0
    remaining = iter(events.events)
    for step in steps:
        if step.drafted:
            accepted_ids, rejected_from, rejected_to, corrected = next(remaining)
            assert accepted_ids == step.tokens[: step.accepted]
            if step.accepted == step.drafted:
                assert (rejected_from, rejected_to, corrected) == (-1, -1, [])
            else:
                assert rejected_from == position + step.accepted
                assert rejected_to == position + step.drafted - 1
                assert corrected == [tokens[rejected_from]]
        position += len(step.tokens)


def test_mtp_relative_to_the_bundle():
    name = "tiny_gemma4_mtp"
    with abi.Context(models.bundle(name)) as context:
        text, steps = generate(context, "abc", f"mtp/drafter-{name}.gguf")
        assert text == models.alphabet("c", 40)
        assert sum(step.accepted for step in steps) > 20


def test_mtp_over_resets_and_further_prompts():
    name = "tiny_gemma4_mtp"
    with abi.Context(models.bundle(name)) as context:
        drafter = str(models.drafter(name))
        with context.open(max_tokens=20, context_size=512, mtp_drafter_path=drafter, draft_max=4) as stream:
            for text in ["abc", "xyz", "m" * 100 + "op"]:
                stream.prefill(context.tokenize(text))
                assert stream.generate() == models.alphabet(text, 20)
            assert stream.reset_keep(100) == 100
            stream.prefill(context.tokenize("pq", add_special=False))
            steps = stream.steps()
            assert "".join(step.text for step in steps) == models.alphabet("q", 20)
            assert all(step.accepted == step.drafted for step in steps)


@pytest.fixture
def smaller_drafter(monkeypatch, tmp_path):
    """A drafter without the last token of its target, to which it was added when that was tuned."""
    monkeypatch.setattr(vocabulary, "MERGES", vocabulary.MERGES[:-1])
    monkeypatch.setattr(vocabulary, "TOKENS", vocabulary.TOKENS[:-1])
    monkeypatch.setattr(vocabulary, "SIZE", vocabulary.SIZE - 1)
    path = tmp_path / "drafter.gguf"
    make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, False, 2, 2048, seed=1).write(path)
    return path


def test_a_token_that_the_drafter_has_not(smaller_drafter):
    """Then nothing is drafted, until the token is no longer in the context."""
    added = vocabulary.SIZE  # the target's last token
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        config = {"max_tokens": 12, "context_size": 256, "mtp_drafter_path": str(smaller_drafter), "draft_max": 4}
        with context.open(**config) as stream:
            prompt = context.tokenize("abc")
            stream.prefill([*prompt, added, *context.tokenize("xyz", add_special=False)])
            assert stream.generate() == models.alphabet("z", 12)
            assert stats(stream)["drafted_tokens"] == 0
            assert stream.reset_keep(len(prompt)) == len(prompt)
            stream.prefill(context.tokenize("de", add_special=False))
            assert stream.generate() == models.alphabet("e", 12)
            assert stats(stream)["drafted_tokens"] > 0


# --- limits --------------------------------------------------------------------------------------


def test_the_caps_hold():
    name = "tiny_llama_cycle"
    path = str(models.text_model(name))
    with abi.Context(models.bundle(name)) as context:
        with context.open(max_tokens=11, context_size=256, mtp_drafter_path=path, draft_max=8) as stream:
            stream.prefill(context.tokenize("abc"))
            steps = stream.steps(tokens_cap=3)
            assert [len(step.tokens) for step in steps] == [1, 3, 3, 3, 1]
            assert "".join(step.text for step in steps) == models.alphabet("c", 11)
        with context.open(context_size=16, mtp_drafter_path=path, draft_max=8) as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == models.alphabet("c", 12)
            assert stats(stream)["stop_reason"] == "context_full"
            assert stats(stream)["kv_used"] == 16


def test_text_that_does_not_fit_waits_with_its_tokens():
    name = "tiny_llama_cycle"
    with abi.Context(models.bundle(name)) as context:
        path = str(models.text_model(name))
        with context.open(max_tokens=20, context_size=64, mtp_drafter_path=path, draft_max=7) as stream:
            stream.prefill(context.tokenize("abc"))
            steps = stream.steps(text_cap=3)
            assert "".join(step.text for step in steps) == models.alphabet("c", 20)
            assert all(len(step.text) <= 2 for step in steps)
            stream.reset()
            # What waits is not in the context for who prefills meanwhile.
            stream.prefill(context.tokenize("abc"))
            assert [stream.next(text_cap=3).text for _ in range(2)] == ["d", "ef"]
            stream.prefill(context.tokenize("xy", add_special=False))
            assert stats(stream)["kv_used"] == 4 + 3 + 2
            assert stream.next(tokens_cap=2).text == "z"


def test_an_end_inside_the_drafts():
    with abi.Context(models.bundle("tiny_llama_end")) as context:
        text, steps = generate(context, "abc", models.text_model("tiny_llama_cycle"), draft_max=5)
        assert text == "defghij"
        assert steps[-1].ended


def test_draft_min():
    """Near the end of max_tokens fewer can be drafted; below draft_min none are."""
    name = "tiny_llama_cycle"
    with abi.Context(models.bundle(name)) as context:
        text, steps = generate(context, "abc", models.text_model(name), 4, draft_min=4, max_tokens=9)
        assert text == models.alphabet("c", 9)
        assert [step.drafted for step in steps] == [0, 4, 0, 0, 0]


def test_sampling_with_a_drafter_is_sampling_without():
    name = "tiny_llama_cycle"
    with abi.Context(models.bundle(name)) as context:

        def text(**config) -> str:
            with context.open(max_tokens=40, context_size=128, temperature=1.0, top_k=20, **config) as stream:
                stream.library.llm_stream_set_seed(stream.handle, 5)
                stream.prefill(context.tokenize("abc"))
                return stream.generate()

        plain = text()
        assert plain != models.alphabet("c", 40)  # or it would show nothing
        assert text(mtp_drafter_path=str(models.text_model(name)), draft_max=4) == plain


def test_a_grammar_with_a_drafter():
    name = "tiny_llama_cycle"
    with abi.Context(models.bundle(name)) as context:
        grammar = 'root ::= "def" [m-z]+ "b" [a-z]* "."'
        plain = None
        for config in [{}, {"mtp_drafter_path": str(models.text_model(name)), "draft_max": 4}]:
            with context.open(max_tokens=30, context_size=128, gbnf_grammar=grammar, **config) as stream:
                stream.prefill(context.tokenize("abc"))
                text = stream.generate()
                assert plain in (None, text)
                plain = text
        assert plain.startswith("def") and plain[3] in "mnopqrstuvwxyz"


# --- what cannot be ------------------------------------------------------------------------------


def test_no_drafting_without_a_drafter():
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        with context.open(max_tokens=5, context_size=64, draft_max=4) as stream:
            assert stats(stream)["ignored_options"] == ["draft_max"]
        # A drafter that is not to draft is not even opened.
        with context.open(max_tokens=5, context_size=64, mtp_drafter_path="/nowhere", draft_max=0) as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == "defgh"


def test_drafters_that_do_not_fit(demo_bundle, tmp_path):
    mtp = str(models.drafter("tiny_gemma4_mtp"))
    (demo,) = (demo_bundle / "text").glob("*.gguf")
    (tmp_path / "garbage.gguf").write_bytes(b"garbage")
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        for path, message in [
            (mtp, "does not fit the bundle's model: it is a gemma4-assistant, which drafts for gemma4"),
            (demo, "does not fit the bundle's model: its vocabulary has 49152 tokens instead of 362"),
            (tmp_path / "nothing.gguf", "nothing.gguf cannot be opened"),
            (tmp_path / "garbage.gguf", "garbage.gguf is no GGUF file"),
        ]:
            with pytest.raises(abi.Error, match=message):
                context.open(context_size=64, mtp_drafter_path=str(path), draft_max=4)
        with pytest.raises(abi.Error, match="draft_max is 512; at most 511"):
            context.open(context_size=64, mtp_drafter_path=str(demo), draft_max=512)


def test_an_mtp_drafter_is_no_model_of_its_own(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "m.gguf").symlink_to(models.drafter("tiny_gemma4_mtp"))
    with abi.Context(tmp_path) as context:
        with pytest.raises(abi.Error, match="m.gguf"):
            context.open(context_size=64)


@isolated
def test_an_mtp_drafter_without_heads(tmp_path):
    """Their number is divided by."""
    data = bytearray(models.drafter("tiny_gemma4_mtp").read_bytes())
    key = b"gemma4-assistant.attention.head_count_kv"
    at = data.index(key) + len(key) + 4  # behind the type of its value
    data[at : at + 4] = bytes(4)
    drafter = tmp_path / "headless.gguf"
    drafter.write_bytes(data)
    with abi.Context(models.bundle("tiny_gemma4_mtp")) as context:
        with pytest.raises(abi.Error, match="headless.gguf"):
            context.open(context_size=64, draft_max=4, mtp_drafter_path=str(drafter))


# --- callbacks and cancelling --------------------------------------------------------------------


def test_a_callback_may_cancel():
    name = "tiny_llama_cycle"
    with abi.Context(models.bundle(name)) as context:
        path = str(models.text_model(name))
        with context.open(max_tokens=40, context_size=256, mtp_drafter_path=path, draft_max=4) as stream:

            @abi.VerifierCallback
            def cancel(_event, _user):
                stream.cancel()

            context.library.call("set_verifier_callback", context.handle, cancel, None)
            stream.prefill(context.tokenize("abc"))
            stream.next()
            with pytest.raises(abi.Error) as error:
                stream.next()
            assert error.value.status == abi.CANCELLED
            context.library.call("set_verifier_callback", context.handle, abi.VerifierCallback(), None)
            stream.reset()
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == models.alphabet("c", 40)


def test_cancel_while_drafting():
    name = "tiny_gemma4_mtp"
    with abi.Context(models.bundle(name)) as context:
        drafter = str(models.drafter(name))
        with context.open(max_tokens=400, context_size=1024, mtp_drafter_path=drafter, draft_max=8) as stream:
            for delay in range(10):
                timer = threading.Timer(delay * 0.003, stream.cancel)
                timer.start()
                try:
                    stream.prefill(context.tokenize("abc" * 50))
                    stream.generate()
                except abi.Error as error:
                    assert error.status == abi.CANCELLED
                timer.join()
                stream.reset()
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == models.alphabet("c", 400)
