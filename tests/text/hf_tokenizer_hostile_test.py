"""tokenizer.json from strangers: what is not supported, and what is wrong, is an error that names the place."""

from __future__ import annotations

import copy
import json
import os

import pytest
from _hf_tokenizer_testing import Error, HfTokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text import hf_files

BUNDLE_INVALID = -3


@pytest.fixture(scope="module", params=["llama3", "gemma", "metaspace"])
def document(request) -> dict:
    """A file that is right."""
    return json.loads(hf_files.ALL[request.param]().to_str())


def load(directory, text: str | bytes, config: str | None = None) -> HfTokenizer:
    (directory / "tokenizer.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    if config is not None:
        (directory / "tokenizer_config.json").write_text(config)
    return HfTokenizer(str(directory))


def refused(directory, text: str | bytes, config: str | None = None) -> str:
    """The message."""
    with pytest.raises(Error) as error:
        load(directory, text, config)
    status, message = error.value.args
    assert status == BUNDLE_INVALID
    assert message.startswith(str(directory))
    return message


def changed(document: dict, place: str, value) -> str:
    """The file with another value at "/a/b/0"."""
    result = copy.deepcopy(document)
    *path, last = (int(part) if part.isdecimal() else part for part in place.split("/")[1:])
    at = result
    for part in path:
        at = at[part]
    at[last] = value
    return json.dumps(result)


UNSUPPORTED = [
    ("/model/type", "Unigram", '/model/type is "Unigram"; it must be "BPE"'),
    ("/model/vocab", [["a", 0.0]], "/model/vocab must be an object of token ids"),
    ("/model/continuing_subword_prefix", "##", '/model/continuing_subword_prefix is "##"'),
    ("/model/end_of_word_suffix", "</w>", "/model/end_of_word_suffix"),
    ("/model/dropout", 0.1, "/model/dropout is 0.1"),
    ("/normalizer", {"type": "NFC"}, '/normalizer/type is "NFC"'),
    ("/normalizer", {"type": "Sequence", "normalizers": [{"type": "NFKC"}]}, "/normalizer/normalizers/0/type"),
    ("/normalizer", {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}, "expressions are not supported"),
    ("/pre_tokenizer", {"type": "Whitespace"}, '/pre_tokenizer/type is "Whitespace"'),
    (
        "/pre_tokenizer",
        {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
        '/pre_tokenizer/pattern/Regex is "(a+)+$"; it must be the expression of GPT-2, Llama 3 or Qwen 2',
    ),
    (
        "/pre_tokenizer",
        {"type": "Split", "pattern": {"Regex": hf_files.GPT2}, "behavior": "Removed", "invert": False},
        "/pre_tokenizer/behavior",
    ),
    (
        "/pre_tokenizer",
        {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated"},
        "/pre_tokenizer/pattern/String",
    ),
    ("/pre_tokenizer", {"type": "Split", "pattern": {"String": " "}, "behavior": "Odd"}, "/pre_tokenizer/behavior"),
    ("/pre_tokenizer", {"type": "Metaspace", "replacement": "ab"}, "/pre_tokenizer/replacement"),
    (
        "/pre_tokenizer",
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "often"},
        "/pre_tokenizer/prepend_scheme",
    ),
    ("/decoder", {"type": "WordPiece"}, '/decoder/type is "WordPiece"'),
    ("/decoder", {"type": "Fuse"}, "/decoder is an object; it must be byte-level"),
    ("/decoder", {"type": "Strip", "content": " ", "start": 99, "stop": 0}, "/decoder/start is 99"),
    ("/post_processor", {"type": "BertProcessing"}, '/post_processor/type is "BertProcessing"'),
    (
        "/post_processor",
        {"type": "TemplateProcessing", "single": [], "special_tokens": {}},
        "/post_processor/single is an array; it must be an array with one",
    ),
    (
        "/post_processor",
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}], "special_tokens": {}},
        "/post_processor/special_tokens/x is missing",
    ),
    ("/added_tokens/0/single_word", True, "/added_tokens/0/single_word is true"),
    ("/added_tokens/0/id", 2**32, "/added_tokens/0/id is 4294967296; it must be a whole number from 0 to 1048575"),
    ("/added_tokens/0/id", -1, "/added_tokens/0/id is -1"),
    ("/added_tokens/1/id", 0, "/added_tokens/1/id is 0; it must be an id of its own"),
    ("/added_tokens/0/content", "x" * 2000, "/added_tokens/0/content"),
    ("/added_tokens", {}, "/added_tokens is an object; it must be an array"),
    ("/model/vocab", {}, "/model/vocab is missing or empty"),
    ("/model/vocab", {"a": 2**20}, "/model/vocab/a is 1048576"),
    ("/model/vocab", {"a": -1}, "/model/vocab/a is -1"),
    ("/model/vocab", {"a": 1.5}, "/model/vocab/a is 1.5"),
    ("/model/vocab", {"a": {"b": 1}}, "/model/vocab must be an object of token ids"),
    ("/model/vocab", {"a": 7, "b": 7}, "/model/vocab/b has the id 7, which another token has already"),
    ("/model/merges/3", ["a"], "/model/merges/3 must be two tokens"),
    ("/model/merges/3", "a b c", "/model/merges/3 must be two tokens"),
    ("/model/merges/3", ["a", ["b"]], "/model/merges/3 must be two tokens"),
    ("/model/merges/3", {"a": "b"}, "/model/merges/3 must be two tokens"),
    ("/model/merges/3", ["no such", "token"], "/model/merges/3 merges"),
    ("/model/unk_token", "no such token", "/model/unk_token"),
    ("/model", [], "/model is an array; it must be an object"),
]


@pytest.mark.parametrize(("place", "value", "message"), UNSUPPORTED)
def test_the_place_is_named(document, tmp_path, place, value, message):
    assert message in refused(tmp_path, changed(document, place, value))


@pytest.mark.parametrize("key", ["model", "decoder"])
def test_what_is_missing_is_named(document, tmp_path, key):
    assert f"/{key}" in refused(tmp_path, json.dumps({k: v for k, v in document.items() if k != key}))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"model": {"vocab": {"\xff": 0}}}', b"\0" * 99]
)
def test_not_a_tokenizer(tmp_path, text):
    refused(tmp_path, text)


def test_a_nul_is_not_the_end(document, tmp_path):
    assert "NUL byte" in refused(tmp_path, json.dumps(document) + "\0")


def test_no_file(tmp_path):
    with pytest.raises(Error, match="tokenizer.json: cannot be opened: No such file"):
        HfTokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(Error, match="tokenizer.json: is a directory, not a file"):
        HfTokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").rmdir()
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(Error, match="tokenizer.json: is not a regular file"):
        HfTokenizer(str(tmp_path))


@pytest.mark.parametrize("name", ["tokenizer_config.json", "chat_template.jinja"])
def test_settings_that_are_gone_are_not_taken_for_none(document, tmp_path, name):
    """Without them a text would have other tokens: here of a download whose links lead nowhere."""
    (tmp_path / name).symlink_to("gone")
    assert f"{name}: is a link to a file that does not exist" in refused(tmp_path, json.dumps(document))


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting(tmp_path, opening):
    assert "nested deeper" in refused(tmp_path, '{"model":' + opening * 100_000)
    assert "nested deeper" in refused(tmp_path, '{"x":' + opening * 100_000)


def test_many_values(tmp_path):
    assert "holds more than 100000 values" in refused(tmp_path, '{"x": [' + "1," * 200_000 + "1]}")
    assert "holds more than 16384 objects and arrays" in refused(tmp_path, '{"x": [' + "{}," * 200_000 + "{}]}")


DOUBLED = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}  # two bytes of each that is no ASCII


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("/normalizer", {"type": "Sequence", "normalizers": [DOUBLED] * 40}, "/normalizer/normalizers/4 is an object"),
        ("/normalizer", DOUBLED | {"content": "a" * 1000}, "/normalizer is an object"),
        ("/normalizer", {"type": "Prepend", "prepend": "a" * 1000}, "/normalizer is an object"),
        (
            "/pre_tokenizer",
            {"type": "Sequence", "pretokenizers": [BYTES] * 40},
            "/pre_tokenizer/pretokenizers/4 is an object; it must be one of at most 16 steps, which together make at "
            "most 16 bytes of one",
        ),
        (
            "/pre_tokenizer",
            {"type": "Sequence", "pretokenizers": [{"type": "Digits"}] * 40},
            "/pre_tokenizer/pretokenizers/16 is an object",
        ),
    ],
)
def test_little_text_remains_little(document, tmp_path, place, value, message):
    assert message in refused(tmp_path, changed(document, place, value))


def test_a_space_that_takes_spaces_along(document, tmp_path):
    """Each takes those on its left that no other has, and looks at no others: a million of them are soon read."""
    added = {"id": 1000, "content": " ", "special": False, "normalized": False, "lstrip": True}
    tokenizer = load(tmp_path, changed(document, "/added_tokens/0", added))
    assert tokenizer.tokenize(" " * 1_000_000, add_special=False) == [1000] * 1_000_000


def test_an_added_token_that_grows(document, tmp_path):
    added = {"id": 1000, "content": "a" * 1000, "special": False, "normalized": True}
    text = changed(document | {"normalizer": DOUBLED}, "/added_tokens/0", added)
    assert "/added_tokens/0/content" in refused(tmp_path, text)


def test_many_tokens_around_a_text(document, tmp_path):
    """A token that stands for many, and is there many times."""
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x"}}] * 5000 + [{"Sequence": {"id": "A"}}],
        "special_tokens": {"x": {"ids": [0] * 50_000}},
    }
    assert "ids/64 is 0; it must be one of at most 64 around" in refused(
        tmp_path, changed(document, "/post_processor", template)
    )


def test_truncated_at_any_place(document, tmp_path):
    text = json.dumps(document)
    for end in range(1, len(text), len(text) // 50):
        refused(tmp_path, text[:end])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[]", "tokenizer_config.json: the document is an array"),
        ('{"add_bos_token": 1}', "/add_bos_token is 1; it must be true or false"),
        ('{"add_bos_token": true}', "/add_bos_token is true, and /bos_token names no token"),
        ('{"add_eos_token": true, "eos_token": "no such token"}', "/add_eos_token is true"),
        ('{"bos_token": 3}', "/bos_token is 3"),
        ('{"bos_token": {}}', "/bos_token/content is missing"),
        ('{"chat_template": 3}', "/chat_template is 3"),
        ('{"x": ' + "[" * 1000, "nested deeper"),
    ],
)
def test_tokenizer_config(document, tmp_path, config, message):
    assert message in refused(tmp_path, json.dumps(document), config)


_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-5, 2**40), st.text(max_size=4), st.just([]), st.just({}))


def _places(value, at: str = "") -> list[str]:
    if isinstance(value, dict) and at != "/model/vocab":
        return [at, *(p for key, child in value.items() if "/" not in key for p in _places(child, f"{at}/{key}"))]
    if isinstance(value, list):
        return [at, *(p for i, child in enumerate(value[:3]) for p in _places(child, f"{at}/{i}"))]
    return [at]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_value_at_any_place(document, tmp_path_factory, data):
    """An error of ours, or a tokenizer that works."""
    place = data.draw(st.sampled_from(_places(document)[1:]))
    try:
        tokenizer = load(tmp_path_factory.mktemp("x"), changed(document, place, data.draw(_LEAVES)))
    except Error as error:
        assert error.args[0] == BUNDLE_INVALID
    else:
        tokenizer.detokenize(tokenizer.tokenize("the text  \n 12 <bos>", add_special=True))
