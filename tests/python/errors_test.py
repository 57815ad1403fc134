"""Every failure is an exception of its own kind, with the library's words."""

from __future__ import annotations

import os

import elizainference as eliza
import pytest

from tests.support import models


@pytest.fixture(scope="module")
def engine():
    with eliza.Engine(models.bundle("tiny_llama_cycle"), raw=True) as engine:
        yield engine


@pytest.fixture
def bundle(tmp_path):
    """A function that makes a bundle with these files in text/, `_` standing for the dot."""

    def make(**files: bytes):
        (tmp_path / "text").mkdir()
        for name, data in files.items():
            (tmp_path / "text" / name.replace("_", ".")).write_bytes(data)
        return tmp_path

    return make


def _refused(bundle, kind: type[eliza.ElizaError], *fragments: str) -> None:
    with pytest.raises(kind) as caught, eliza.Engine(bundle) as engine:
        engine.generate("abc")
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert isinstance(caught.value, eliza.ElizaError) and caught.value.status < 0


def test_no_bundle(tmp_path):
    _refused(tmp_path / "nowhere", eliza.BundleError, str(tmp_path / "nowhere"))
    _refused("", eliza.BundleError)
    _refused("a\0b", eliza.BundleError, "NUL")
    _refused(os.fsdecode(b"/nowhere/\xff"), eliza.BundleError, "nowhere")


def test_empty_bundle(bundle):
    _refused(bundle(), eliza.BundleError, "gguf")


def test_two_models(bundle):
    data = models.text_model("tiny_llama_cycle").read_bytes()
    _refused(bundle(a_gguf=data, b_gguf=data), eliza.BundleError, "a.gguf", "b.gguf")


def test_garbage(bundle):
    _refused(bundle(model_gguf=b"garbage" * 1000), eliza.BundleError, "model.gguf")


def test_truncated(bundle):
    data = models.text_model("tiny_llama_cycle").read_bytes()
    _refused(bundle(model_gguf=data[: len(data) // 2]), eliza.BundleError, "model.gguf")


@pytest.mark.parametrize(
    ("variable", "fragment"),
    [("litert-lm", "enable_litert"), ("no-such-thing", "no-such-thing"), (" MLX-CoreML ", "mlx")],
)
def test_backend_that_is_not_there(engine, monkeypatch, variable, fragment):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", variable)
    with pytest.raises(eliza.BackendUnavailable, match="ELIZA_LLM_BACKEND") as caught:
        engine.generate("abc")
    assert fragment in str(caught.value)
    assert not any(backend.chosen for backend in engine.backends())


def test_options(engine):
    for options, fragments in [
        ({"max_token": 1}, ("max_token", "max_tokens?")),
        ({"quux": 1}, ("quux", "temperature")),
        ({"max_tokens": -1}, ("max_tokens", "-1", "0")),
        ({"temperature": float("nan")}, ("temperature", "nan")),
    ]:
        with pytest.raises(eliza.InvalidArgument) as caught:
            engine.stream("abc", **options)
        with pytest.raises(eliza.InvalidArgument):
            eliza.Engine(models.bundle("tiny_llama_cycle"), **options)
        assert all(fragment in str(caught.value) for fragment in fragments), str(caught.value)


def test_grammar_that_is_none(engine):
    with pytest.raises(eliza.InvalidArgument, match="grammar"):
        engine.generate("abc", grammar="root ::= (")


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ({"grammar": "root ::= ("}, ["grammar cannot be parsed"]),
        ({"drafter": "mtp/gone.gguf"}, ["drafter", "mtp/gone.gguf"]),
        ({"cache_type_k": "q99"}, ["cache_type_k", "q99"]),
    ],
)
def test_messages_name_options_as_python_does(engine, options, fragments):
    with pytest.raises(eliza.ElizaError) as caught:
        engine.generate("abc", **options)
    for fragment in fragments:
        assert fragment in str(caught.value)
    for foreign in ("gbnf_grammar", "stream config", "mtp_drafter_path"):
        assert foreign not in str(caught.value)


def test_paths_that_are_none():
    for path, fragment in [
        ("", "empty; give the path of a directory"),
        (None, "it must be a path"),
        (5, "it must be a path"),
        (["a"], "it must be a path"),
        ("\ud83d", "it must be a path"),
        (models.text_model("tiny_llama_cycle"), "eliza bundle create FOLDER --model"),
    ]:
        with pytest.raises(eliza.BundleError) as caught:
            eliza.Engine(path)
        assert fragment in str(caught.value)


@pytest.mark.parametrize("value", [None, 5, b"abc", ["abc"], "\ud83d"])
def test_texts_that_are_none(engine, value):
    for call in (engine.tokenize, engine.embed, engine.metadata):
        with pytest.raises(eliza.InvalidArgument, match="must be a string|must be valid Unicode"):
            call(value)


@pytest.mark.parametrize("value", [None, 5, "123", b"123", [1.0], [True], ["1"], [[1]], [-1], [2**31], [10**5000]])
def test_tokens_that_are_none(engine, value):
    for call in (engine.detokenize, engine.eot_score):
        with pytest.raises(eliza.InvalidArgument, match="must be a list of whole numbers|must be whole numbers from 0"):
            call(value)


def test_flags_that_are_none(engine):
    for call, name in [
        (engine.tokenize, "add_special"),
        (engine.tokenize, "parse_special"),
        (engine.detokenize, "remove_special"),
        (engine.detokenize, "unparse_special"),
    ]:
        with pytest.raises(eliza.InvalidArgument, match=f"{name} is 'no'; it must be True or False"):
            call("abc" if call == engine.tokenize else [5], **{name: "no"})


class Unshowable:
    """A value whose repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError


def test_values_that_cannot_be_shown(engine):
    for value, fragment in [(Unshowable(), "<Unshowable>"), (10**5000, "<int>"), ("x" * 1000, "(1002 characters)")]:
        with pytest.raises(eliza.InvalidArgument) as caught:
            engine.stream("abc", max_tokens=value)
        assert fragment in str(caught.value) and len(str(caught.value)) < 400


def test_conversations_that_are_none(engine):
    for messages in ("hello", {"role": "user", "content": "hello"}, 5, None):
        for begin in (engine.chat, engine.achat):
            with pytest.raises(eliza.InvalidArgument, match="must be a list such as"):
                begin(messages)
    itself: dict = {"role": "user", "content": "hello"}
    itself["itself"] = itself
    with engine.chat() as chat:
        for message, fragment in [(5, "must be a dict"), ({"role": "user"}, "no content"), (itself, "holds itself")]:
            with pytest.raises(eliza.InvalidArgument, match=fragment):
                chat.stream(message)  # type: ignore[arg-type]
        for path in (None, 5, "a\0b"):
            with pytest.raises(eliza.InvalidArgument, match="the path is"):
                chat.save(path)
            with pytest.raises(eliza.InvalidArgument, match="the path is"):
                chat.restore(path)


def test_a_callback_that_is_none(engine):
    with pytest.raises(eliza.InvalidArgument, match="must be a function"):
        engine.set_verifier_callback(5)  # type: ignore[arg-type]


def test_prompts(engine):
    for prompt, fragment in [
        (b"abc", "bytes"),
        (5, "int"),
        (None, "NoneType"),
        ([], "empty"),
        (["abc"], "whole numbers"),
        ({"role": "user", "content": "hello"}, "a dict; give a string, a list of messages"),
        ([1, {"role": "user", "content": "hello"}], "whole numbers"),
        ([1, -1], "0 to"),
        ([1, 2**40], "0 to"),
        ("\ud83d", "\\ud83d"),
    ]:
        with pytest.raises(eliza.InvalidArgument) as caught:
            engine.generate(prompt, raw=True)
        assert fragment in str(caught.value)
    with pytest.raises(eliza.InvalidArgument):
        engine.generate([1, 1_000_000])  # no such token in this vocabulary


def test_longer_than_the_context(engine):
    with pytest.raises(eliza.ElizaError, match="64"):
        engine.generate("a" * 1000, context_size=64)


def test_tokens_out_of_the_vocabulary(engine):
    with pytest.raises(eliza.InvalidArgument, match="100000"):
        engine.detokenize([100_000])


def test_what_they_are():
    assert issubclass(eliza.InvalidArgument, ValueError)
    assert issubclass(eliza.OutOfMemory, MemoryError)
    statuses = {
        eliza.NotSupported: -1,
        eliza.InvalidArgument: -2,
        eliza.BundleError: -3,
        eliza.ElizaError: -4,
        eliza.OutOfMemory: -5,
        eliza.LibraryError: -6,
        eliza.Cancelled: -7,
    }
    for kind, status in statuses.items():
        assert kind("x").status == status
        assert issubclass(kind, eliza.ElizaError)
