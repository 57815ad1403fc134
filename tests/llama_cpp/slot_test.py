"""Slots: what is restored is what was saved, and what does not fit is refused without a trace."""

from __future__ import annotations

import os
import resource
import signal
import struct

import _llama_cpp_testing as llama
import pytest

from tests.llama_cpp import recall
from tests.support import abi, models
from tests.support.isolated import isolated


@pytest.fixture(params=recall.ARCHITECTURES)
def context(request):
    with abi.Context(recall.bundle(request.param)) as context:
        yield context


def save(stream: abi.Stream, path) -> None:
    assert stream.library.call("llm_stream_save_slot", stream.handle, os.fsencode(path)) == abi.OK


def restore(stream: abi.Stream, path) -> None:
    assert stream.library.call("llm_stream_restore_slot", stream.handle, os.fsencode(path)) == abi.OK


def suffix(context: abi.Context, text: str) -> list[int]:
    return context.tokenize(text, add_special=False)


def test_a_restored_slot_goes_on_as_the_saved_stream(context, tmp_path):
    slot = tmp_path / "slot"
    with context.open(max_tokens=8, context_size=256) as stream:
        stream.prefill(context.tokenize("xxAxabc"))
        assert stream.generate() == "defghijk"
        save(stream, slot)
        # Saving changes nothing.
        stream.prefill(suffix(context, "pq"))
        assert stream.generate() == recall.text("A", "q", 8)
    with context.open(max_tokens=8, context_size=300) as stream:
        stream.prefill(context.tokenize("Bxyz"))
        stream.generate()
        restore(stream, slot)
        assert stream.stats()["kv_used"] == 8 + 8
        with pytest.raises(abi.Error, match="before any prefill"):
            stream.next()
        stream.prefill(suffix(context, "pq"))
        assert stream.stats()["prompt_tokens"] == 2
        assert stream.generate() == recall.text("A", "q", 8)


@pytest.mark.skipif(not hasattr(llama, "decoded_tokens"), reason="the linker wraps nothing here")
@pytest.mark.parametrize("name", ["tiny_llama_cycle", "tiny_gemma3_cycle"])
def test_a_restored_slot_decodes_only_what_comes_after_it(name, tmp_path):
    path, slot = str(models.text_model(name)), str(tmp_path / "slot")
    saved = llama.Session(path, max_tokens=4, context_size=128)
    saved.prefill([1, *range(20, 60)])
    assert len(saved.generate()) == 4
    saved.save(slot)
    restored = llama.Session(path, max_tokens=4, context_size=128)
    before = llama.decoded_tokens()
    restored.restore(slot)
    restored.prefill([30, 31])
    assert llama.decoded_tokens() - before == 3  # with the last one of the generation, which nobody had asked to go on


def test_a_slot_outlives_the_context(context, tmp_path):
    with context.open(max_tokens=4, context_size=256) as stream:
        stream.prefill(context.tokenize("B"))
        save(stream, tmp_path / "slot")
    with abi.Context(recall.bundle("llama")) as llama, abi.Context(recall.bundle("gemma3")) as gemma:
        fitting = 0
        for other in (llama, gemma):
            with other.open(max_tokens=4, context_size=256) as stream:
                try:
                    restore(stream, tmp_path / "slot")
                except abi.Error as error:
                    assert error.status == abi.INVALID_ARG
                    assert "was saved from another model" in error.message
                    continue
                stream.prefill(suffix(other, "xyz"))
                assert stream.generate() == recall.text("B", "z", 4)
                fitting += 1
        assert fitting == 1


def test_an_empty_stream(context, tmp_path):
    slot = tmp_path / "slot"
    with context.open(max_tokens=5, context_size=256) as stream:
        save(stream, slot)
        restore(stream, slot)
        stream.prefill(context.tokenize("Aabc"))
        assert stream.generate() == "defgh"
        restore(stream, slot)
        assert stream.stats()["kv_used"] == 0
        stream.prefill(context.tokenize("c"))
        assert stream.generate() == "ccccc"


def test_a_sliding_window_that_has_moved_on(tmp_path):
    with abi.Context(recall.bundle("gemma3")) as context, context.open(max_tokens=6, context_size=1500) as stream:
        stream.prefill(context.tokenize("xyz" * 400 + "xAx"))
        save(stream, tmp_path / "slot")
        stream.reset()
        restore(stream, tmp_path / "slot")
        stream.prefill(suffix(context, "abc"))
        assert stream.generate() == recall.text("A", "c", 6)


def test_a_token_nobody_saw_is_not_restored(tmp_path):
    slot = tmp_path / "slot"
    with abi.Context(models.bundle("tiny_llama_utf8")) as context, context.open(context_size=64) as stream:
        stream.prefill(context.tokenize("a"))
        for _ in range(3):
            stream.next(tokens_cap=1)
        with pytest.raises(abi.Error, match="needs 5 bytes"):
            stream.next(text_cap=4)
        save(stream, slot)
        assert stream.next().text == "😀"  # the waiting token is still there
        restore(stream, slot)
        assert stream.stats()["kv_used"] == 2 + 3


def test_the_file_is_replaced_as_a_whole(context, tmp_path):
    slot = tmp_path / "slot"
    slot.write_bytes(b"older")
    with context.open(context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        save(stream, slot)
    assert os.listdir(tmp_path) == ["slot"]
    assert slot.stat().st_mode & 0o777 == 0o600


def test_where_nothing_can_be_written(context, tmp_path):
    with context.open(context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        with pytest.raises(abi.Error, match="the slot file .* cannot be created: ") as error:
            save(stream, tmp_path / "missing" / "slot")
        assert error.value.status == abi.FFI_FAULT
    assert list(tmp_path.iterdir()) == []


# What is wrong with a file: {name: (from good bytes to bad ones, what the message says)}.
BAD = {
    "empty": (lambda data: b"", "has 0 bytes, too few"),
    "half a header": (lambda data: data[:40], "has 40 bytes, too few"),
    "header alone": (lambda data: data[:80], "is truncated"),
    "truncated": (lambda data: data[:-1], "is truncated"),
    "longer": (lambda data: data + b"x", "is truncated, or has grown"),
    "text": (lambda data: b"{}" * 100, "is no slot file"),
    "newer": (lambda data: data[:8] + struct.pack("<I", 2) + data[12:], "format version 2"),
    "other header size": (lambda data: data[:12] + struct.pack("<I", 96) + data[16:], "format version"),
    "other model": (lambda data: data[:24] + bytes(8) + data[32:], "another model"),
    "other llama.cpp": (lambda data: data[:32] + bytes(8) + data[40:], "another version of llama.cpp"),
    "other key type": (lambda data: data[:40] + struct.pack("<I", 8) + data[44:], "other types of KV cache"),
    "endless tokens": (lambda data: data[:48] + struct.pack("<Q", 2**62) + data[56:], "is truncated"),
    "more decoded than there are": (lambda data: data[:56] + struct.pack("<Q", 99) + data[64:], "contradicts itself"),
    "endless state": (lambda data: data[:72] + struct.pack("<Q", 2**63) + data[80:], "is truncated"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_leaves_no_trace(name, context, tmp_path):
    spoil, message = BAD[name]
    slot = tmp_path / "slot"
    with context.open(max_tokens=6, context_size=256) as stream:
        stream.prefill(context.tokenize("Babc"))
        save(stream, slot)
        slot.write_bytes(spoil(slot.read_bytes()))
        stream.reset()
        stream.prefill(context.tokenize("Aabc"))
        text = stream.next(tokens_cap=1).text
        with pytest.raises(abi.Error, match=message) as error:
            restore(stream, slot)
        assert error.value.status == abi.INVALID_ARG
        assert str(slot) in error.value.message
        assert text + stream.generate() == recall.text("A", "c", 6)


def test_no_file(context, tmp_path):
    with context.open(context_size=64) as stream:
        with pytest.raises(abi.Error, match="cannot be opened: No such file"):
            restore(stream, tmp_path / "slot")
        with pytest.raises(abi.Error, match="is a directory, not a file"):
            restore(stream, tmp_path)
        os.mkfifo(tmp_path / "pipe")  # to be refused, and not to be waited for
        with pytest.raises(abi.Error, match="is not a regular file"):
            restore(stream, tmp_path / "pipe")


def test_saving_replaces_files_only(context, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with context.open(context_size=64) as stream:
        for target in (pipe, tmp_path):
            with pytest.raises(abi.Error, match="is not a regular file; name another. Nothing was saved"):
                save(stream, target)
    assert list(tmp_path.iterdir()) == [pipe] and pipe.is_fifo()


@isolated
def test_a_limit_on_the_size_of_files(tmp_path):
    """The system raises a signal for what is written beyond one, which would end the host."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    with abi.Context(models.bundle("tiny_llama_cycle")) as context, context.open(context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        with pytest.raises(abi.Error, match="the slot file .* cannot be written: File too large"):
            save(stream, tmp_path / "slot")
        assert list(tmp_path.iterdir()) == []
        assert signal.SIGXFSZ not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_what_a_killed_process_left_is_in_nobodys_way(context, tmp_path):
    """It may have had the number of this one."""
    left = [tmp_path / f"slot.tmp.{os.getpid()}.{i}" for i in range(1000)]
    for file in left:
        file.write_text("a part of a slot")
    with context.open(max_tokens=5, context_size=64) as stream:
        stream.prefill(context.tokenize("Aabc"))
        save(stream, tmp_path / "slot")
        restore(stream, tmp_path / "slot")
    assert sorted(tmp_path.iterdir()) == sorted([*left, tmp_path / "slot"])
    assert {file.read_text() for file in left} == {"a part of a slot"}


def test_flipped_bits(tmp_path):
    """Each of a file's first bytes, and some of the rest: the checksum finds them all."""

    @isolated
    def check():
        slot = tmp_path / "slot"
        with abi.Context(recall.bundle("gemma3")) as context, context.open(max_tokens=3, context_size=64) as stream:
            stream.prefill(context.tokenize("Babc"))
            save(stream, slot)
            good = slot.read_bytes()
            for position in [*range(160), *range(160, len(good), 1009)]:
                flipped = bytearray(good)
                flipped[position] ^= 1 << (position % 8)
                slot.write_bytes(flipped)
                with pytest.raises(abi.Error):
                    restore(stream, slot)
            slot.write_bytes(good)
            restore(stream, slot)
            stream.prefill(suffix(context, "c"))
            assert stream.generate() == recall.text("B", "c", 3)

    check()


def test_a_forged_state_is_an_error(tmp_path):
    """Whose checksum fits: then llama.cpp has the last word, and the stream is as it was."""

    def hash_words(value: int, data: bytes) -> int:
        for i in range(0, len(data), 8):
            value = (value ^ int.from_bytes(data[i : i + 8].ljust(8, b"\0"), "little")) * 0x100000001B3 & (2**64 - 1)
            value ^= value >> 29
        return value

    def sign(data: bytes, tokens: int) -> bytes:
        header, body = bytearray(data[:80]), data[80:]
        header[16:24] = bytes(8)
        value = 0xCBF29CE484222325
        for part in (bytes(header), body[: 4 * tokens], body[4 * tokens :]):
            value = hash_words(value, part)
        header[16:24] = struct.pack("<Q", value)
        return bytes(header) + body

    @isolated
    def check():
        slot = tmp_path / "slot"
        for architecture in recall.ARCHITECTURES:
            with abi.Context(recall.bundle(architecture)) as context:
                with context.open(max_tokens=4, context_size=64) as stream:
                    prompt = context.tokenize("Babc")
                    stream.prefill(prompt)
                    save(stream, slot)
                    good = slot.read_bytes()
                    assert sign(good, len(prompt)) == good
                    state = 80 + 4 * len(prompt)
                    for position in range(state, min(state + 400, len(good)), 3):
                        for value in (0xFF, 0x7F):
                            forged = bytearray(good)
                            forged[position] = value
                            slot.write_bytes(sign(bytes(forged), len(prompt)))
                            try:
                                restore(stream, slot)
                            except abi.Error as error:
                                assert error.status == abi.INVALID_ARG, error
                    stream.reset()
                    stream.prefill(prompt)
                    assert stream.generate() == recall.text("B", "c", 4)

    check()


def test_a_slot_larger_than_the_context(context, tmp_path):
    slot = tmp_path / "slot"
    with context.open(max_tokens=4, context_size=64) as stream:
        stream.prefill(context.tokenize("A" + "x" * 40))
        save(stream, slot)
    with context.open(max_tokens=4, context_size=32) as stream:
        with pytest.raises(abi.Error, match="the slot holds 42 tokens, more than this context's 32"):
            restore(stream, slot)


def test_other_cache_types(context, tmp_path):
    slot = tmp_path / "slot"
    with context.open(context_size=64, cache_type_k="q8_0", cache_type_v="q8_0", max_tokens=4) as stream:
        stream.prefill(context.tokenize("Aabc"))
        save(stream, slot)
        restore(stream, slot)
        stream.prefill(suffix(context, "z"))
        assert stream.generate() == recall.text("A", "z", 4)
    with context.open(context_size=64) as stream:
        with pytest.raises(abi.Error, match="other types of KV cache"):
            restore(stream, slot)


def test_a_cancelled_stream_neither_saves_nor_restores(context, tmp_path):
    with context.open(context_size=64) as stream:
        save(stream, tmp_path / "slot")
        stream.cancel()
        for use in (save, restore):
            with pytest.raises(abi.Error) as error:
                use(stream, tmp_path / "slot")
            assert error.value.status == abi.CANCELLED
