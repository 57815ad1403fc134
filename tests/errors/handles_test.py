"""Handles that are NULL, closed, of another kind or made up, and calls in the wrong order."""

from __future__ import annotations

import ctypes
import random
from ctypes import byref, c_void_p

import pytest

from tests.errors.expect import check_message, error
from tests.support import abi, models
from tests.support.isolated import isolated

CYCLE = "tiny_llama_cycle"

# The functions whose first argument is a handle, except those that end it.
STREAM = {name for name in abi.SIGNATURES if name.startswith("llm_stream_")} - {
    "llm_stream_supported",
    "llm_stream_open",
    "llm_stream_close",
}
TEXT = {
    "mmap_acquire",
    "mmap_evict",
    "llm_stream_open",
    "tokenize",
    "detokenize",
    "embed",
    "llm_eot_score",
    "set_verifier_callback",
    "llm_backend_report",
    "model_meta",
}
CLOSING = {"destroy", "free_string", "free_tokens", "speaker_free"} | {
    name for name in abi.SIGNATURES if name.endswith("_close")
}


def _zero(kind):
    return 0 if kind in (ctypes.c_int, ctypes.c_int32, ctypes.c_size_t, ctypes.c_float, ctypes.c_uint64) else kind()


def _call(name: str, handle: int | None) -> tuple[int | None, str | None]:
    """Calls a function with `handle`, and zeros for all else; its result and message."""
    library = abi.load()
    result, *kinds = abi.SIGNATURES[name]
    arguments = [_zero(kind) for kind in kinds]
    if kinds[0] is abi.HANDLE:
        arguments[0] = handle
    message = c_void_p()
    if kinds[-1] is abi.ERROR:
        arguments[-1] = byref(message)
    value = getattr(library, name)(*arguments)
    assert result is not abi.HANDLE or value is None, f"{name} returned the handle {value}"
    return value, library.take_string(message) if kinds[-1] is abi.ERROR else None


def _expect_refusal(name: str, handle: int | None, *fragments: str) -> None:
    value, message = _call(name, handle)
    assert value in (None, abi.INVALID_ARG), f"{name} returned {value}: {message}"
    if abi.SIGNATURES[name][-1] is abi.ERROR:
        check_message(message, *fragments)


@isolated
def test_null_for_everything():
    for name, (result, *kinds) in abi.SIGNATURES.items():
        if not kinds:
            continue
        value, message = _call(name, None)
        if result is ctypes.c_int:
            assert value in (abi.INVALID_ARG, abi.NOT_IMPLEMENTED), f"{name} returned {value}"
        if kinds[-1] is abi.ERROR:
            check_message(message)


@isolated
def test_null_for_the_error_too():
    library = abi.load()
    for name, (_, *kinds) in abi.SIGNATURES.items():
        if kinds and kinds[-1] is abi.ERROR:
            getattr(library, name)(*[_zero(kind) for kind in kinds])


@isolated
def test_null_handles():
    for name in STREAM | TEXT:
        _expect_refusal(name, None, "NULL")


@isolated
def test_closing_nothing():
    for name in CLOSING:
        assert getattr(abi.load(), name)(None) is None


@isolated
def test_closed():
    with abi.Context(models.bundle(CYCLE)) as context:
        stream = context.open()
        handle = stream.handle
        stream.close()
        for name in STREAM:
            _expect_refusal(name, handle, str(handle), "closed")
        abi.load().llm_stream_close(handle)
        # The next stream is another: the handle of the first is not given out again.
        with context.open() as other:
            assert other.handle != handle
            _expect_refusal("llm_stream_prefill", handle, "closed")
    context = abi.Context(models.bundle(CYCLE))
    handle = context.handle
    context.close()
    for name in TEXT:
        _expect_refusal(name, handle, str(handle), "closed")
    abi.load().destroy(handle)


@isolated
def test_a_stream_ends_with_its_context():
    context = abi.Context(models.bundle(CYCLE))
    stream = context.open()
    stream.prefill(context.tokenize("abc"))
    context.close()
    with error(abi.INVALID_ARG, str(stream.handle), "closed"):
        stream.next()
    stream.close()


@isolated
def test_of_another_kind():
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=3) as stream:
        for name in STREAM:
            _expect_refusal(name, context.handle, str(context.handle), "context", "stream")
        for name in TEXT:
            _expect_refusal(name, stream.handle, str(stream.handle), "context", "stream")
        abi.load().destroy(stream.handle)
        abi.load().llm_stream_close(context.handle)
        # Neither has ended what it does not own.
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == "def"


@isolated
def test_made_up():
    numbers = random.Random(0)
    with abi.Context(models.bundle(CYCLE)) as context, context.open() as stream:
        valid = {context.handle, stream.handle}
        candidates = {*range(1, 40), 2**31, 2**53, 2**63, 2**64 - 1, id(numbers), ctypes.addressof(c_void_p())}
        candidates |= {numbers.getrandbits(bits) | 1 for bits in range(2, 65) for _ in range(4)}
        for handle in candidates - valid:
            for name in STREAM | TEXT:
                _expect_refusal(name, handle, str(handle))
            for name in CLOSING - {"free_string", "free_tokens", "speaker_free"}:
                getattr(abi.load(), name)(handle)
        stream.prefill(context.tokenize("abc"))
        assert stream.next().text == "d"


@isolated
def test_next_before_prefill():
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=3) as stream:
        with error(abi.INVALID_ARG, "prefill"):
            stream.next()
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == "def"
        stream.reset()
        with error(abi.INVALID_ARG, "prefill"):
            stream.next()


@isolated
def test_next_after_the_end():
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=3) as stream:
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == "def"
        for _ in range(3):
            assert stream.next() == abi.Step(ended=True, tokens=[], text="", drafted=0, accepted=0)
        # A prefill appends, and counts anew.
        stream.prefill(context.tokenize("xy", add_special=False))
        assert stream.generate() == "z a"


@isolated
def test_after_a_cancel():
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=3) as stream:
        tokens = context.tokenize("abc")
        stream.prefill(tokens)
        assert stream.cancel() == abi.OK
        assert stream.cancel() == abi.OK
        for _ in range(2):
            with error(abi.CANCELLED, "cancel"):
                stream.next()
            with error(abi.CANCELLED, "cancel"):
                stream.prefill(tokens)
        stream.reset()
        stream.prefill(tokens)
        assert stream.generate() == "def"
        stream.cancel()
        assert stream.reset_keep(len(tokens)) in (0, len(tokens))
        with error(abi.INVALID_ARG, "prefill"):
            stream.next()


@pytest.mark.parametrize("keep", [-1, -(2**31)])
@isolated
def test_reset_keep_of_less_than_nothing(keep):
    with abi.Context(models.bundle(CYCLE)) as context, context.open() as stream:
        assert stream.reset_keep(keep) == abi.INVALID_ARG


@isolated
def test_reset_keep_of_more_than_there_is():
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=3) as stream:
        assert stream.reset_keep(2**31 - 1) == 0
        tokens = context.tokenize("abc")
        stream.prefill(tokens)
        assert stream.reset_keep(2**31 - 1) in (0, len(tokens))
