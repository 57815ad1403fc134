"""Texts at the edges of what a tokenizer is given, on a SentencePiece vocabulary and on a byte-level BPE one."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import abi, models


@pytest.fixture(scope="module", params=["tiny", "demo"])
def context(request):
    bundle = models.bundle("tiny_llama_cycle") if request.param == "tiny" else request.getfixturevalue("demo_bundle")
    with abi.Context(bundle) as context:
        yield context


@pytest.fixture(scope="module")
def demo(demo_bundle):
    with abi.Context(demo_bundle) as context:
        yield context


def test_nothing(context):
    assert context.tokenize("", add_special=False) == []
    assert context.detokenize([]) == ""


def test_special_tokens_as_text_and_as_tokens(demo):
    text = "<|im_start|>user"
    as_text, as_token = (demo.tokenize(text, add_special=False, parse_special=parse) for parse in (False, True))
    assert len(as_token) == 2 < len(as_text)
    # Text that was typed stays text.
    assert demo.detokenize(as_text) == text
    assert demo.detokenize(as_token) == "user"
    assert demo.detokenize(as_token, unparse_special=True) == text


def test_the_token_at_the_start():
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        tokens = context.tokenize("abc")
        assert tokens[0] == 1
        assert tokens[1:] == context.tokenize("abc", add_special=False)
        assert context.detokenize(tokens, unparse_special=True) == "<s>abc"
        assert context.detokenize(tokens, remove_special=True, unparse_special=True) == "abc"


@pytest.mark.parametrize(
    "text", [b"\0", b"a\0b", b"\0\0\0", "é😀你".encode(), b"\n\n  \t x", b" leading and trailing "]
)
def test_bytes_come_back(context, text):
    tokens = context.tokenize(text, add_special=False)
    # A NUL ends a C string, so that detokenize has to replace it.
    assert context.detokenize(tokens) == text.decode().replace("\0", "\ufffd")


@pytest.mark.parametrize("text", [b"\xff", b"\xc3", b"a\xe4\xbdb", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\x80" * 100])
def test_malformed_utf8_is_tokenized(context, text):
    tokens = context.tokenize(text, add_special=False)
    assert context.detokenize(tokens) == text.decode(errors="replace")


# What people write. SmolLM2's vocabulary lacks some bytes, such as control characters, and drops them.
CHARACTERS = st.characters(categories=["L", "N", "P", "S", "Zs"], max_codepoint=0x3FFFF)


@settings(max_examples=200, deadline=None)
@given(text=st.text(CHARACTERS, max_size=200))
def test_any_text_comes_back(context, text):
    assert context.detokenize(context.tokenize(text, add_special=False)) == text


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), special=st.booleans(), parse=st.booleans())
def test_any_bytes_are_tokenized(context, data, special, parse):
    tokens = context.tokenize(data, add_special=special, parse_special=parse)
    assert all(token >= 0 for token in tokens)


def test_a_buffer_that_is_too_small_names_the_size(context):
    tokens = context.tokenize("abc def", add_special=False)
    ids, text = (ctypes.c_int * len(tokens))(*tokens), ctypes.create_string_buffer(7)
    with pytest.raises(abi.Error, match="needs a text_cap of 8 bytes") as error:
        context.library.call("detokenize", context.handle, ids, len(tokens), 0, 0, text, 7)
    assert error.value.status == abi.INVALID_ARG


@pytest.mark.parametrize("token", [-1, 2**31 - 1, -(2**31)])
def test_an_id_that_is_none(context, token):
    with pytest.raises(abi.Error, match=f"token {token} at index 0 is not in the model's vocabulary"):
        context.detokenize([token])


def test_metadata(demo):
    def meta(key: bytes) -> str:
        return demo.library.call_for_string("model_meta", demo.handle, key)

    assert meta(b"general.architecture") == "llama"
    assert "<|im_start|>" in meta(b"tokenizer.chat_template")
    assert meta(b"llama.block_count") == "30"
    with pytest.raises(abi.Error, match="has no metadata under .no.such.key"):
        meta(b"no.such.key")
