"""What a stream's context holds: reset, reset_keep, slots, and its end."""

from __future__ import annotations

import os

import pytest

from tests.conformance.common import PROMPT, answer, refused, run
from tests.support import abi


def test_reset_forgets(context):
    expected = answer(context)
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(context.tokenize("something else, and longer than that"))
        run(stream)
        stream.reset()
        assert stream.stats()["kv_used"] == 0
        stream.prefill(context.tokenize(PROMPT))
        assert run(stream) == expected


@pytest.mark.parametrize("generated", [0, 1, 24])
@pytest.mark.parametrize("keep", [0, 1, 2, 5, 9, 10_000])
def test_reset_keep_and_the_rest_is_a_full_prefill(context, backend, keep, generated):
    prompt = context.tokenize(PROMPT)
    rest = context.tokenize(" over the dog", add_special=False)
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(prompt)
        tokens: list[int] = []
        while len(tokens) < generated:
            tokens += stream.next(tokens_cap=1).tokens
        kept = stream.reset_keep(keep)
        # Of what the caller has seen: the last token may not have been decoded yet.
        assert 0 <= kept <= min(keep, len(prompt) + len(tokens))
        if "reset_keep" in backend.can:
            assert kept >= min(keep, len(prompt) + len(tokens) - 1)
        assert stream.stats()["kv_used"] == kept
        with refused(abi.INVALID_ARG, "before any prefill"):
            stream.next()
        history = (prompt + tokens)[: min(keep, len(prompt) + len(tokens))]
        stream.prefill(history[kept:] + rest)
        ours = run(stream)
    try:
        expected = answer(context, history + rest)
    except abi.Error as error:
        # A part of a character, say, that it generated itself, and that a runtime which takes text cannot be given.
        assert "all_ids" not in backend.can
        assert "no text gives this token" in error.message
        return
    assert ours == expected


def test_reset_keep_of_less_than_nothing(context):
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.next(tokens_cap=1)
        assert stream.reset_keep(-1) in (0, abi.INVALID_ARG)
        stream.reset()
        stream.prefill(context.tokenize(PROMPT))
        assert run(stream) == answer(context)


def test_a_full_context(context):
    with context.open(max_tokens=24, context_size=64) as stream:
        prompt = context.tokenize(PROMPT)
        with refused(abi.INVALID_ARG, f"{len(prompt) * 20} tokens", "64"):
            stream.prefill(prompt * 20)
        assert stream.stats()["kv_used"] == 0
        stream.prefill(prompt)
        first = stream.next(tokens_cap=1)
        used = stream.stats()["kv_used"]
        with refused(abi.INVALID_ARG, "64 tokens", "64"):
            stream.prefill((prompt * 20)[:64])
        assert stream.stats()["kv_used"] == used
        # The generation goes on as if nothing had been asked.
        tokens, text = run(stream)
    assert (first.tokens + tokens, first.text + text) == answer(context)


# --- slots ---------------------------------------------------------------------------------------


def save(stream: abi.Stream, path) -> None:
    stream.library.call("llm_stream_save_slot", stream.handle, os.fsencode(path))


def restore(stream: abi.Stream, path) -> None:
    stream.library.call("llm_stream_restore_slot", stream.handle, os.fsencode(path))


def test_a_slot_saved_and_restored(context, backend, tmp_path):
    prompt = context.tokenize(PROMPT)
    rest = context.tokenize(" over the dog", add_special=False)
    path = tmp_path / "slot"
    with context.open(max_tokens=8, context_size=256) as stream:
        stream.prefill(prompt)
        if "slots" not in backend.can:
            with refused(abi.INVALID_ARG):
                save(stream, path)
            with refused(abi.INVALID_ARG):
                restore(stream, path)
            assert list(tmp_path.iterdir()) == []
            # It goes on as if it had not been asked.
            assert run(stream) == answer(context, max_tokens=8)
            return
        generated, _ = run(stream)
        save(stream, path)
        assert [file.name for file in tmp_path.iterdir()] == ["slot"]
        used = stream.stats()["kv_used"]
        stream.prefill(rest)
        expected = run(stream)
    with context.open(max_tokens=8, context_size=256) as stream:
        restore(stream, path)
        assert stream.stats()["kv_used"] == used
        stream.prefill((prompt + generated)[used:] + rest)
        assert run(stream) == expected


def test_an_empty_slot(context, backend, tmp_path):
    if "slots" not in backend.can:
        return
    with context.open(max_tokens=8, context_size=256) as stream:
        save(stream, tmp_path / "slot")
        stream.prefill(context.tokenize(PROMPT))
        restore(stream, tmp_path / "slot")
        assert stream.stats()["kv_used"] == 0
        stream.prefill(context.tokenize(PROMPT))
        assert run(stream) == answer(context, max_tokens=8)


@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "half", "flipped", "directory"])
def test_a_failed_restore_leaves_everything_as_it_was(context, backend, tmp_path, damage):
    if "slots" not in backend.can:
        return
    path = tmp_path / "slot"
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(context.tokenize("another text"))
        save(stream, path)
        data = bytearray(path.read_bytes())
        path.unlink()
        if damage == "directory":
            path.mkdir()
        elif damage != "missing":
            data[-9] ^= 1
            path.write_bytes({"empty": b"", "garbage": b"x" * 999, "half": data[: len(data) // 2]}.get(damage, data))
        stream.reset()
        stream.prefill(context.tokenize(PROMPT))
        first = stream.next(tokens_cap=1)
        before = stream.stats()["kv_used"]
        with pytest.raises(abi.Error, match="slot"):
            restore(stream, path)
        assert stream.stats()["kv_used"] == before
        tokens, text = run(stream)
        assert (first.tokens + tokens, first.text + text) == answer(context)


def test_a_slot_that_cannot_be_written(context, backend, tmp_path):
    if "slots" not in backend.can:
        return
    with context.open(max_tokens=24, context_size=256) as stream:
        stream.prefill(context.tokenize(PROMPT))
        with pytest.raises(abi.Error, match="no/such/directory"):
            save(stream, tmp_path / "no/such/directory/slot")
        assert run(stream) == answer(context)
