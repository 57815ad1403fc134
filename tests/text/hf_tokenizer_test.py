"""tokenizer.json: the ids and texts of the `tokenizers` package, on small vocabularies of every supported kind."""

from __future__ import annotations

import pytest
from _hf_tokenizer_testing import Error, HfTokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text import hf_files


@pytest.fixture(scope="module", params=hf_files.ALL)
def pair(request, tmp_path_factory):
    """(ours, theirs)"""
    theirs = hf_files.ALL[request.param]()
    return HfTokenizer(str(hf_files.write(theirs, tmp_path_factory.mktemp(request.param)))), theirs


def expected(theirs, text: str, add_special: bool, parse_special: bool) -> list[int]:
    theirs.encode_special_tokens = not parse_special
    return theirs.encode(text, add_special_tokens=add_special).ids


@pytest.mark.parametrize("parse_special", [True, False])
@pytest.mark.parametrize("add_special", [True, False])
def test_hard_texts(pair, add_special, parse_special):
    ours, theirs = pair
    for text in hf_files.HARD:
        assert ours.tokenize(text, add_special, parse_special) == expected(theirs, text, add_special, parse_special), (
            text
        )


@pytest.mark.parametrize("text", ["a", " ", "\n", "'", "<", "1", "\u0301", "the the's  \n"])
def test_long_texts(pair, text):
    """Time that grew with the square of the size would not end."""
    ours, theirs = pair
    long = text * (100_000 // len(text))
    assert ours.tokenize(long) == expected(theirs, long, False, True)


_PARTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from([*" \t\n\r'\u00a0\u0301", "  ", "'s", "'LL", "123", "the", "ing", "😀", "你", *hf_files.HARD]),
)


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(_PARTS, max_size=12), parse_special=st.booleans())
def test_any_text(pair, parts, parse_special):
    ours, theirs = pair
    text = "".join(parts)
    assert ours.tokenize(text, False, parse_special) == expected(theirs, text, False, parse_special)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=60))
def test_malformed_bytes_are_replacement_characters(pair, data):
    ours, theirs = pair
    assert ours.tokenize(data, False, True) == expected(theirs, data.decode(errors="replace"), False, True)


@pytest.mark.parametrize("maker", [hf_files.smollm2, hf_files.llama3])
def test_every_character(maker, tmp_path):
    """The classes of characters behind the splits, over all of Unicode."""
    theirs = maker()
    ours = HfTokenizer(str(hf_files.write(theirs, tmp_path)))
    for begin in range(0, 0x110000, 0x1000):
        step = 1 if begin < 0x20000 else 61  # what lies above is in few and large ranges
        characters = (chr(code) for code in range(begin, begin + 0x1000, step) if not 0xD800 <= code < 0xE000)
        text = "".join(f"a{c}1{c}'" for c in characters)
        assert ours.tokenize(text) == expected(theirs, text, False, True), f"from U+{begin:04X}"


@pytest.mark.parametrize("unparse_special", [True, False])
def test_text_of_ids(pair, unparse_special):
    ours, theirs = pair
    for text in hf_files.HARD:
        ids = expected(theirs, text, True, True)
        decoded = theirs.decode(ids, skip_special_tokens=not unparse_special)
        assert ours.detokenize(ids, unparse_special=unparse_special).decode() == decoded, text


def test_pieces_add_up(pair):
    ours, theirs = pair
    for text in hf_files.HARD:
        ids = expected(theirs, text, False, False)
        joined = b"".join(map(ours.piece, ids))
        # detokenize takes the space away that tokenize put in front.
        assert ours.detokenize(ids) in (joined, joined.removeprefix(b" "))


def test_special_tokens_have_no_bytes(pair):
    ours, theirs = pair
    for id_, token in theirs.get_added_tokens_decoder().items():
        assert ours.find(token.content) == id_
        text = token.content.replace(hf_files.SPACE, " ").encode()
        assert ours.piece(id_) == (b"" if token.special else text)
        assert ours.detokenize([id_], unparse_special=True).lstrip() == text.lstrip()


def test_what_was_added_is_removed(pair):
    ours, _ = pair
    ids = ours.tokenize("the text", add_special=True)
    assert ours.detokenize(ids, remove_special=True, unparse_special=True).strip() == b"the text"


def test_ids_that_are_none(pair):
    ours, theirs = pair
    assert ours.size == theirs.get_vocab_size()
    for id_ in (-1, ours.size, 2**31 - 1, -(2**31)):
        with pytest.raises(Error, match=f"token {id_} at index 1 is not in the model's vocabulary") as error:
            ours.detokenize([0, id_])
        assert error.value.args[0] == -2
        assert ours.piece(id_) == b""


@pytest.mark.parametrize(
    ("config", "begins", "ends"),
    [
        ({}, True, False),
        ({"add_bos_token": False}, False, False),
        ({"add_bos_token": True, "bos_token": "<bos>"}, True, False),
        ({"add_eos_token": True, "eos_token": {"content": "<eos>"}, "bos_token": "<bos>"}, True, True),
        ({"bos_token": None, "chat_template": None}, True, False),
    ],
)
def test_tokenizer_config(tmp_path, config, begins, ends):
    theirs = hf_files.gemma()
    ours = HfTokenizer(str(hf_files.write(theirs, tmp_path, config)))
    plain = ours.tokenize("the text")
    bos, eos = theirs.token_to_id("<bos>"), theirs.token_to_id("<eos>")
    ids = ours.tokenize("the text", add_special=True)
    assert ids == [bos] * begins + plain + [eos] * ends
    assert ours.detokenize(ids, remove_special=True, unparse_special=True) == b"the text"


def test_metadata(tmp_path):
    config = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "chat_template": "{{ messages }}"}
    theirs = hf_files.gemma()
    ours = HfTokenizer(str(hf_files.write(theirs, tmp_path, config)))
    assert ours.metadata("tokenizer.chat_template") == "{{ messages }}"
    for name, token in (("bos", "<bos>"), ("eos", "<eos>"), ("unknown", "<unk>"), ("padding", "<pad>")):
        assert ours.metadata(f"tokenizer.ggml.{name}_token_id") == str(theirs.token_to_id(token))
    assert ours.metadata("general.architecture") == "test"
    assert ours.metadata("no.such.key") is None


def test_chat_templates(tmp_path):
    named = {"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}
    directory = hf_files.write(hf_files.gemma(), tmp_path, named)
    assert HfTokenizer(str(directory)).metadata("tokenizer.chat_template") == "d"
    (directory / "chat_template.jinja").write_text("a file of its own")
    assert HfTokenizer(str(directory)).metadata("tokenizer.chat_template") == "a file of its own"
