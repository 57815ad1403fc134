"""Slots: what is restored is what was saved, and what does not fit is refused without a trace."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from pathlib import Path

import pytest

from tests.mlx.golden_test import directory
from tests.mlx.session_test import NAMES, PROMPT, Session, counts_what_is_fed, fails, fed_tokens, open_session
from tests.models import safetensors_writer


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.mark.parametrize("count", [1, 3, 25])
def test_a_restored_slot_goes_on_as_the_saved_stream(name, count, tmp_path):
    slot = str(tmp_path / "slot")
    with open_session(name, max_tokens=count) as session:
        session.prefill(PROMPT)
        session.generate()
        session.save(slot)
        session.prefill([60, 61])
        expected = session.generate()  # saving changed nothing
        used = len(PROMPT) + count
    with open_session(name, max_tokens=count, context_size=300) as session:
        session.prefill([9, 8, 7])
        session.next(1)
        session.restore(slot)
        assert session.stats()["kv_used"] == used
        assert "before any prefill" in fails(-2, session.next)
        session.prefill([60, 61])
        assert session.stats()["prompt_tokens"] == 2
        assert session.generate() == expected


@counts_what_is_fed
def test_a_restored_slot_computes_only_what_comes_after_it(name, tmp_path):
    slot = str(tmp_path / "slot")
    with open_session(name, max_tokens=3) as session:
        session.prefill(PROMPT)
        session.generate()
        session.save(slot)
    with open_session(name, max_tokens=3) as session:
        before = fed_tokens()
        session.restore(slot)
        session.prefill([60, 61])
        assert fed_tokens() - before == 3  # with the last one of the generation, which nobody had asked to go on


def test_saved_in_the_middle_of_a_generation(name, tmp_path):
    slot = str(tmp_path / "slot")
    with open_session(name, max_tokens=20) as session:
        session.prefill(PROMPT)
        seen = [session.next(1)[1][0] for _ in range(5)]
        session.save(slot)
        rest = session.generate()
        session.reset()
        session.prefill(PROMPT + seen + [60])
        expected = session.generate()
        session.restore(slot)
        assert session.stats()["kv_used"] == len(PROMPT) + 5
        session.prefill([60])
        assert session.generate() == expected
    assert len(rest) == 15


def test_an_empty_stream(name, tmp_path):
    slot = str(tmp_path / "slot")
    with open_session(name, max_tokens=4) as session:
        session.save(slot)
        session.prefill(PROMPT)
        expected = session.generate()
        session.restore(slot)
        assert session.stats()["kv_used"] == 0
        session.prefill(PROMPT)
        assert session.generate() == expected


def test_another_models_slot_is_refused(tmp_path):
    slot = str(tmp_path / "slot")
    with open_session("llama_f32") as session:
        session.prefill(PROMPT)
        session.save(slot)
    with open_session("gemma4_f32") as session:
        assert "was saved from another model; nothing was restored" in fails(-2, session.restore, slot)


def test_a_slot_of_a_model_of_the_same_kind_is_refused(tmp_path):
    """Whose config, shapes and sizes are equal: only what it has learnt differs."""
    slot = str(tmp_path / "slot")
    with open_session("llama_f32") as session:
        session.prefill(PROMPT)
        session.save(slot)
    copy = Path(shutil.copytree(directory("llama_f32"), tmp_path / "model"))
    tensors = safetensors_writer.load(copy / "model.safetensors")
    for name, tensor in tensors.items():
        values = tensor.values()
        for i, value in enumerate(values):
            values[i] = value * 1.01
        tensors[name] = safetensors_writer.Tensor.of("F32", tensor.shape, values)
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").write_bytes(safetensors_writer.dumps(tensors, {"format": "mlx"}))
    with Session(str(copy), context_size=64) as session:
        assert "was saved from another model" in fails(-2, session.restore, slot)


def test_the_file_is_replaced_as_a_whole(tmp_path):
    slot = tmp_path / "slot"
    slot.write_bytes(b"older")
    with open_session("llama_f32") as session:
        session.prefill(PROMPT)
        session.save(str(slot))
        assert os.listdir(tmp_path) == ["slot"]
        assert slot.stat().st_mode & 0o777 == 0o600
        assert "cannot be created: " in fails(-4, session.save, str(tmp_path / "missing" / "slot"))
        assert "is not a regular file; name another" in fails(-2, session.save, str(tmp_path))
    assert set(safetensors_writer.load(slot)) >= {"tokens", "layer.0.keys", "layer.0.values", "layer.3.values"}


def _header(data: bytes) -> tuple[dict, bytes]:
    (size,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _with(data: bytes, change) -> bytes:
    header, rest = _header(data)
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + rest


def _meta(**values):
    return lambda data: _with(data, lambda header: header["__metadata__"].update(values))


# What is wrong with a file: {name: (from good bytes to bad ones, what the message says)}.
BAD = {
    "empty": (lambda data: b"", "has 0 bytes, too few"),
    "half a number": (lambda data: data[:5], "has 5 bytes, too few"),
    "half a header": (lambda data: data[:100], "is no slot file, or is truncated"),
    "truncated": (lambda data: data[:-1], "is no slot file, or is truncated"),
    "longer": (lambda data: data + b"x", "is damaged"),
    "text": (lambda data: b"{}" * 100, "is no slot file"),
    "another safetensors file": (lambda data: safetensors_writer.dumps({}), "is no slot file"),
    "newer": (_meta(eliza_slot="2"), "format version 2"),
    "other model": (_meta(model="0" * 16), "another model"),
    "other count": (_meta(cached="3"), "is damaged"),
    "other tokens": (_meta(tokens="99999999999999999999"), "is damaged"),
    "no checksum": (lambda data: _with(data, lambda header: header["__metadata__"].pop("checksum")), "is damaged"),
    "a tensor less": (lambda data: _with(data, lambda header: header.pop("layer.0.keys")), "is damaged"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_leaves_no_trace(bad, name, tmp_path):
    spoil, message = BAD[bad]
    slot = tmp_path / "slot"
    with open_session(name, max_tokens=6) as session:
        session.prefill(PROMPT)
        session.save(str(slot))
        slot.write_bytes(spoil(slot.read_bytes()))
        expected = session.generate()
        session.reset()
        session.prefill(PROMPT)
        first = session.next(1)[1]
        error = fails(-2, session.restore, str(slot))
        assert message in error
        assert str(slot) in error
        assert first + session.generate() == expected


def test_no_file(tmp_path):
    with open_session("llama_f32") as session:
        assert "cannot be opened: No such file" in fails(-2, session.restore, str(tmp_path / "slot"))
        assert "is a directory, not a file" in fails(-2, session.restore, str(tmp_path))


def test_flipped_bits(tmp_path):
    slot = tmp_path / "slot"
    with open_session("gemma3_q4", max_tokens=3) as session:
        session.prefill(PROMPT)
        session.save(str(slot))
        good = slot.read_bytes()
        for position in [*range(0, 400, 3), *range(400, len(good), 1009)]:
            flipped = bytearray(good)
            flipped[position] ^= 1 << (position % 8)
            slot.write_bytes(flipped)
            fails(-2, session.restore, str(slot))
        slot.write_bytes(good)
        session.restore(str(slot))


def _hash_words(value: int, data: bytes) -> int:
    for i in range(0, len(data), 8):
        value = (value ^ int.from_bytes(data[i : i + 8].ljust(8, b"\0"), "little")) * 0x100000001B3 & (2**64 - 1)
        value ^= value >> 29
    return value


def _sign(data: bytes) -> bytes:
    header, _ = _header(data)
    bare = data.replace(header["__metadata__"]["checksum"].encode(), b"0" * 16, 1)
    return bare.replace(b'"checksum":"' + b"0" * 16, b'"checksum":"%016x' % _hash_words(0xCBF29CE484222325, bare), 1)


def _forge(data: bytes, change) -> bytes:
    return _sign(_with(data, change))


def test_a_forged_slot_is_an_error(tmp_path):
    """Whose checksum fits: counts, shapes and types are looked at before the stream is touched."""
    slot = tmp_path / "slot"
    with open_session("gemma3_q4", max_tokens=3) as session:
        session.prefill(PROMPT)
        session.save(str(slot))
        expected = session.generate()
        good = slot.read_bytes()
        assert _sign(good) == good
        forgeries = [
            lambda header: header["__metadata__"].update(cached="99"),
            lambda header: header["__metadata__"].update(visible="-1"),
            lambda header: header["__metadata__"].update(tokens="11"),
            lambda header: header["__metadata__"].update(cached="11"),
            lambda header: header.pop("tokens"),
            lambda header: header.pop("layer.2.values"),
            lambda header: header["layer.1.keys"].update(shape=[1, 2, 12, 32]),
            lambda header: header["layer.1.keys"].update(dtype="I32"),
            lambda header: header["tokens"].update(dtype="F32"),
        ]
        for forgery in forgeries:
            slot.write_bytes(_forge(good, forgery))
            assert "contradicts itself" in fails(-2, session.restore, str(slot))
        # Tokens that the model does not have.
        header, rest = _header(good)
        begin = header["tokens"]["data_offsets"][0]
        alien = bytearray(rest)
        alien[begin : begin + 4] = struct.pack("<i", 100_000)
        slot.write_bytes(_sign(good[: len(good) - len(rest)] + bytes(alien)))
        assert "token 100000 at index 0" in fails(-2, session.restore, str(slot))
        session.reset()
        session.prefill(PROMPT)
        assert session.generate() == expected


def test_a_slot_larger_than_the_context(tmp_path):
    slot = str(tmp_path / "slot")
    with open_session("llama_f32") as session:
        session.prefill([random.Random(1).randrange(362) for _ in range(40)])
        session.save(slot)
    with open_session("llama_f32", context_size=32) as session:
        assert "the slot holds 40 tokens, more than this context's 32" in fails(-2, session.restore, slot)


def test_a_cancelled_stream_neither_saves_nor_restores(tmp_path):
    slot = str(tmp_path / "slot")
    with open_session("llama_f32") as session:
        session.save(slot)
        session.cancel()
        fails(-7, session.save, slot)
        fails(-7, session.restore, slot)
