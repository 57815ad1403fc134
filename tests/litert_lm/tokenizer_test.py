"""The vocabulary of a .litertlm, and the way from ids to the text that the runtime takes, and back."""

from __future__ import annotations

import pytest

from tests.support import abi

TEXTS = [
    "",
    "hello world",
    " hello  world ",
    "the quick brown fox\njumps",
    "h\u00e9llo",
    "\U0001f600\U0001f680",
    "\u4f60\u597d",
    "a\u0301",
    "<start_of_turn>user\nhi<end_of_turn>\n",
    "<bos>",
    "<b>",
    "x" * 500,
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("parse_special", [False, True])
def test_a_text_comes_back(context, text, parse_special):
    tokens = context.tokenize(text, add_special=False, parse_special=parse_special)
    assert context.detokenize(tokens) == text


@pytest.mark.parametrize("text", TEXTS)
def test_the_start_token_is_added_and_removed(context, text):
    (start,) = context.tokenize("", add_special=True)
    tokens = context.tokenize(text, add_special=True)
    assert tokens == [start, *context.tokenize(text, add_special=False)]
    assert context.detokenize(tokens, remove_special=True, unparse_special=True) == text
    assert context.detokenize(tokens, remove_special=False, unparse_special=True) == "<bos>" + text


def test_special_tokens_in_a_users_text_are_text(context):
    text = "<start_of_turn>"
    (special,) = context.tokenize(text, add_special=False, parse_special=True)
    assert special not in context.tokenize(f"a{text}b {text}", add_special=False, parse_special=False)
    assert context.tokenize("<bos>", False, True) == context.tokenize("<bos>", False, False)


@pytest.mark.parametrize("data", [b"a\0b", b"a\xff\xfeb", b"\xf0\x9f\x98"])
def test_what_is_no_text_is_replaced(context, data):
    text = context.detokenize(context.tokenize(data, add_special=False))
    assert text == data.replace(b"\0", b"\xff").decode(errors="replace")


@pytest.mark.parametrize("token", [-1, 512, 2**31 - 1, -(2**31)])
def test_ids_outside_the_vocabulary(context, token):
    for call in (context.detokenize, lambda tokens: context.open().prefill(tokens)):
        with pytest.raises(abi.Error, match=f"token {token} at index 1 is not in the model's vocabulary") as caught:
            call([300, token])
        assert caught.value.status == abi.INVALID_ARG
        assert "from 0 to 511" in caught.value.message


def test_every_token_is_prefilled_as_itself_or_refused_by_name(context):
    refused = []
    with context.open() as stream:
        for token in range(512):
            try:
                stream.prefill([token])
            except abi.Error as error:
                assert error.status == abi.INVALID_ARG
                assert error.message.startswith(f"token {token} (")
                assert "at index 0 cannot be prefilled" in error.message
                refused.append(token)
            stream.reset()
    shown = [context.detokenize([token], unparse_special=True) for token in refused]
    # Control tokens (2, the start token, is the context's), the unknown one, and the 256 bytes: parts of characters, or
    # characters that are tokens themselves.
    assert {text for text in shown if len(text) > 1} == {"<pad>", "<eos>", " \u2047 "}
    assert {0, 1, 3} <= set(refused) <= {0, 1, 3, *range(6, 262)}


def test_any_way_to_cut_a_text_into_tokens_is_prefilled_exactly(context):
    """Tokens that a tokenizer would have merged, as a client has them that tokenizes part by part."""
    letters = [token for letter in "hello" for token in context.tokenize(letter, add_special=False)]
    merged = context.tokenize("hello", add_special=False)
    assert len(letters) == 5
    assert len(merged) == 1
    plain = context.tokenize("<end_of_turn>", add_special=False, parse_special=False)
    for tokens in (letters, merged, letters + merged + letters, plain):
        texts = []
        for parts in ([tokens], [[token] for token in tokens]):
            with context.open(max_tokens=4) as stream:
                for part in parts:
                    stream.prefill(part)
                assert stream.stats()["kv_used"] == len(tokens) + 1
                texts.append(stream.generate())
        assert texts[0] == texts[1]


def test_characters_of_several_tokens_are_prefilled_whole(context):
    emoji = context.tokenize("\U0001f600", add_special=False)
    assert len(emoji) > 1
    (letter,) = context.tokenize("a", add_special=False)
    for tokens in (emoji, emoji * 100, [*emoji, letter, *emoji]):
        with context.open() as stream:
            stream.prefill(tokens)
            assert stream.stats()["kv_used"] == len(tokens) + 1
            stream.reset()
            with pytest.raises(abi.Error, match=rf"at index {len(tokens) + 1 - len(emoji)} cannot be prefilled"):
                stream.prefill([letter, *tokens[:-1]])


def test_a_start_token_further_on_is_refused(context):
    tokens = context.tokenize("hello")
    with context.open() as stream:
        with pytest.raises(abi.Error, match=r"token 2 \(\"<bos>\"\) at index 2 cannot be prefilled"):
            stream.prefill(tokens + tokens)
        stream.prefill(tokens)
        with pytest.raises(abi.Error, match=r"token 2 \(\"<bos>\"\) at index 0 cannot be prefilled"):
            stream.prefill(tokens)


def test_there_is_no_metadata(context):
    with pytest.raises(abi.Error, match="has no metadata"):
        context.library.call_for_string("model_meta", context.handle, b"general.name")
