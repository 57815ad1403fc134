"""Values out of range, buffers that are too small, and pointers that are NULL, on handles that are right."""

from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, byref, c_float, c_int, c_int32, c_size_t, c_void_p

import pytest

from tests.errors.expect import error
from tests.support import abi, models
from tests.support.guarded import guarded
from tests.support.isolated import isolated

CYCLE = "tiny_llama_cycle"
UTF8 = "tiny_llama_utf8"


def _context() -> abi.Context:
    return abi.Context(models.bundle(CYCLE))


CONFIGS = [
    ({"max_tokens": -1}, "max_tokens", "-1"),
    ({"max_tokens": -(2**31)}, "max_tokens", str(-(2**31))),
    ({"temperature": -0.5}, "temperature", "-0.5"),
    ({"temperature": math.nan}, "temperature", "nan"),
    ({"temperature": math.inf}, "temperature", "inf"),
    ({"top_k": -1}, "top_k", "-1"),
    ({"draft_min": 3, "draft_max": 2}, "draft_min", "3"),
    ({"draft_max": -1}, "draft_max", "-1"),
    ({"n_gpu_layers": -2}, "n_gpu_layers", "-2"),
    ({"context_size": -1}, "context_size", "-1"),
    ({"cache_type_k": "q99"}, "cache_type_k", "q99"),
    ({"cache_type_v": "\x01"}, "cache_type_v"),
]


@pytest.mark.parametrize(("fields", "fragments"), [(fields, rest) for fields, *rest in CONFIGS])
@isolated
def test_config(fields, fragments):
    with _context() as context:
        with error(abi.INVALID_ARG, *fragments):
            context.open(**fields)
        context.open().close()


@isolated
def test_no_config():
    with _context() as context, error(abi.INVALID_ARG, "config"):
        context.library.call("llm_stream_open", context.handle, None)


@pytest.mark.parametrize(
    "fields", [{"top_p": math.nan}, {"top_p": -1.0}, {"repeat_penalty": -3.0}, {"top_k": 2**31 - 1}]
)
@isolated
def test_config_that_means_off(fields):
    with _context() as context, context.open(max_tokens=3, **fields) as stream:
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == "def"


@isolated
def test_a_context_that_no_memory_holds():
    with _context() as context, error(abi.OOM, "context_size", str(2**31 - 1)):
        context.open(context_size=2**31 - 1)


@pytest.mark.parametrize("token", [-1, 362, 2**31 - 1, -(2**31)])
@isolated
def test_tokens_of_no_vocabulary(token):
    with _context() as context, context.open(max_tokens=3) as stream:
        tokens = context.tokenize("abc")
        with error(abi.INVALID_ARG, str(token)):
            stream.prefill([*tokens, token])
        with error(abi.INVALID_ARG, str(token)):
            context.detokenize([*tokens, token])
        # Nothing of the refused prefill is in the context.
        stream.prefill(tokens)
        assert stream.generate() == "def"


@isolated
def test_a_prefill_of_nothing():
    with _context() as context, context.open() as stream:
        with error(abi.INVALID_ARG, "num_tokens"):
            context.library.call("llm_stream_prefill", stream.handle, (c_int32 * 1)(5), 0)
        with error(abi.INVALID_ARG, "token_ids"):
            context.library.call("llm_stream_prefill", stream.handle, None, 3)


@isolated
def test_a_prefill_larger_than_the_context():
    with _context() as context, context.open(context_size=256, max_tokens=3) as stream:
        tokens = context.tokenize("abc")
        with error(abi.INVALID_ARG, "100000", "256"):
            stream.prefill([tokens[1]] * 100_000)
        stream.prefill(tokens)
        assert stream.generate() == "def"


@isolated
def test_counts_beyond_memory():
    # The count lies about the array; no one may read that far.
    with _context() as context, context.open() as stream:
        tokens = ctypes.cast(guarded((c_int32 * 4)(5, 5, 5, 5)), POINTER(c_int32))
        for count in (2**31, 2**62, 2**64 - 1):
            with error(abi.INVALID_ARG, str(count)):
                context.library.call("llm_stream_prefill", stream.handle, tokens, count)
            with error(abi.INVALID_ARG, str(count)):
                text = (ctypes.c_char * 64)()
                context.library.call("detokenize", context.handle, tokens, count, 0, 0, text, len(text))
            with error(abi.INVALID_ARG, str(count)):
                out, out_count, text = POINTER(c_int)(), c_size_t(), ctypes.c_char_p(guarded(b"abc"))
                context.library.call("tokenize", context.handle, text, count, 1, 0, byref(out), byref(out_count))
            with error(abi.INVALID_ARG, str(count)):
                embedding, dim, text = (c_float * 64)(), c_int(), ctypes.c_char_p(guarded(b"abc"))
                context.library.call("embed", context.handle, text, count, 1, embedding, 64, byref(dim))
            with error(abi.INVALID_ARG, f"num_tokens is {count}"):
                scores = [byref(c_float()), byref(c_int32()), byref(c_float())]
                context.library.call("llm_eot_score", context.handle, tokens, count, 5, *scores)


@isolated
def test_caps_of_zero():
    with _context() as context, context.open(max_tokens=3) as stream:
        stream.prefill(context.tokenize("abc"))
        with error(abi.INVALID_ARG, "tokens_cap"):
            stream.next(tokens_cap=0)
        tokens, count, text = (c_int32 * 8)(), c_size_t(), (ctypes.c_char * 8)()
        with error(abi.INVALID_ARG, "text_cap"):
            context.library.call("llm_stream_next", stream.handle, tokens, 8, byref(count), text, 0, None, None)
        assert stream.generate() == "def"


@pytest.mark.parametrize("missing", [1, 3, 4])
@isolated
def test_no_room_for_the_result(missing):
    with _context() as context, context.open(max_tokens=3) as stream:
        stream.prefill(context.tokenize("abc"))
        arguments = [stream.handle, (c_int32 * 8)(), 8, byref(c_size_t()), (ctypes.c_char * 64)(), 64, None, None]
        arguments[missing] = None
        with error(abi.INVALID_ARG, {1: "tokens_out", 3: "num_tokens_out", 4: "text_out"}[missing], "NULL"):
            context.library.call("llm_stream_next", *arguments)
        assert stream.generate() == "def"


@isolated
def test_caps_beyond_memory():
    # A cap bounds what may be written; it is not a size that may be touched.
    with _context() as context, context.open(max_tokens=3) as stream:
        stream.prefill(context.tokenize("abc"))
        tokens, count, text = (c_int32 * 16)(), c_size_t(), (ctypes.c_char * 256)()
        said = ""
        status = 0
        while status == 0:
            status = context.library.call(
                "llm_stream_next", stream.handle, tokens, 2**64 - 1, byref(count), text, 2**64 - 1, None, None
            )
            said += text.value.decode()
        assert said == "def"


@isolated
def test_text_caps_too_small_for_a_character():
    with abi.Context(models.bundle(UTF8)) as context, context.open(max_tokens=16) as stream:
        stream.prefill(context.tokenize("a"))
        said = ""
        for text_cap in (1, 2, 3, 4):  # of the five that an emoji and its NUL need
            while True:
                try:
                    step = stream.next(text_cap=text_cap)
                except abi.Error as refusal:
                    assert refusal.status == abi.INVALID_ARG
                    assert f"text_cap is {text_cap}" in refusal.message and "5" in refusal.message
                    break
                said += step.text
        # Nothing was lost on the way.
        assert said + stream.generate() == models.utf8("a", 8)


@isolated
def test_text_that_fits_just_so():
    with abi.Context(models.bundle(UTF8)) as context, context.open(max_tokens=64) as stream:
        stream.prefill(context.tokenize("a"))
        assert stream.generate(tokens_cap=1, text_cap=5) == models.utf8("a", 32)


@isolated
def test_tokenize():
    with _context() as context:
        call = context.library.call
        tokens, count = POINTER(c_int)(), c_size_t(7)
        with error(abi.INVALID_ARG, "text", "NULL"):
            call("tokenize", context.handle, None, 5, 1, 0, byref(tokens), byref(count))
        assert count.value == 0 and not tokens
        with error(abi.INVALID_ARG, "out_tokens"):
            call("tokenize", context.handle, b"abc", 3, 1, 0, None, byref(count))
        with error(abi.INVALID_ARG, "out_count"):
            call("tokenize", context.handle, b"abc", 3, 1, 0, byref(tokens), None)


@isolated
def test_tokenize_of_nothing():
    with _context() as context:
        tokens, count = POINTER(c_int)(), c_size_t(7)
        context.library.call("tokenize", context.handle, None, 0, 0, 0, byref(tokens), byref(count))
        assert count.value == 0
        assert tokens, "no tokens, but a buffer to free"
        context.library.free_tokens(ctypes.cast(tokens, c_void_p))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xc3", b"a\0b", "😀".encode()[:3], b"\0"])
@isolated
def test_tokenize_of_odd_bytes(text):
    with _context() as context:
        tokens = context.tokenize(text, add_special=False)
        assert len(tokens) >= 1
        with context.open(max_tokens=3) as stream:
            stream.prefill(tokens)
            stream.generate()


@isolated
def test_detokenize_into_too_little():
    with _context() as context:
        tokens = context.tokenize("abcdef", add_special=False)
        ids = (c_int * len(tokens))(*tokens)
        for cap in (1, 6):
            with error(abi.INVALID_ARG, "text_cap", "7", str(cap)):
                context.library.call("detokenize", context.handle, ids, len(tokens), 0, 0, (ctypes.c_char * 16)(), cap)
        with error(abi.INVALID_ARG, "text_cap"):
            context.library.call("detokenize", context.handle, ids, len(tokens), 0, 0, (ctypes.c_char * 16)(), 0)
        with error(abi.INVALID_ARG, "text_out"):
            context.library.call("detokenize", context.handle, ids, len(tokens), 0, 0, None, 16)
        with error(abi.INVALID_ARG, "tokens"):
            context.library.call("detokenize", context.handle, None, 3, 0, 0, (ctypes.c_char * 16)(), 16)
        assert context.detokenize(tokens) == "abcdef"


@isolated
def test_metadata():
    with _context() as context:
        with error(abi.INVALID_ARG, "no.such.key"):
            context.library.call_for_string("model_meta", context.handle, b"no.such.key")
        with error(abi.INVALID_ARG, "key"):
            context.library.call_for_string("model_meta", context.handle, b"")
        with error(abi.INVALID_ARG, "out_value"):
            context.library.call("model_meta", context.handle, b"general.architecture", None)
        assert context.library.call_for_string("model_meta", context.handle, b"general.architecture") == "llama"


@pytest.mark.parametrize(
    "schema", ["", "{", "[]", '{"type": "no-such-type"}', '{"$ref": "#/nowhere"}', "\x00", "1e999"]
)
@isolated
def test_json_schema(schema):
    with error(abi.INVALID_ARG):
        abi.load().call_for_string("json_schema_to_gbnf", schema.encode())


@isolated
def test_regions():
    with _context() as context:
        for name in ("mmap_acquire", "mmap_evict"):
            for region in ("text", "mtp", "dflash"):
                assert context.library.call(name, context.handle, region.encode()) == 0
            for region in ("tts", "asr", "vad", "wakeword"):
                with error(abi.NOT_IMPLEMENTED, region):
                    context.library.call(name, context.handle, region.encode())
            for region in ("", "TEXT", "no-such-region"):
                with error(abi.INVALID_ARG, "region", region):
                    context.library.call(name, context.handle, region.encode())
            with error(abi.INVALID_ARG, "region"):
                context.library.call(name, context.handle, None)
