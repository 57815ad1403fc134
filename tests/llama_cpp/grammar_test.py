"""Grammars constrain every token, and say where they are wrong."""

from __future__ import annotations

import ctypes
import json
import re

import pytest

from tests.llama_cpp import recall
from tests.support import abi, models
from tests.support.isolated import isolated


@pytest.fixture(scope="module")
def noise():
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        yield context


def generate(context: abi.Context, grammar: str, prompt: str = "abc", seed: int = 1, **config) -> str:
    config = {"max_tokens": 60, "context_size": 256} | config
    with context.open(gbnf_grammar=grammar, **config) as stream:
        stream.library.llm_stream_set_seed(stream.handle, seed)
        stream.prefill(context.tokenize(prompt))
        return stream.generate()


SETTINGS = [
    {},
    {"temperature": 1.0},
    {"temperature": 1.5, "top_k": 3},
    {"temperature": 0.8, "top_p": 0.5, "repeat_penalty": 1.3},
]


@pytest.mark.parametrize("config", SETTINGS)
@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ('root ::= "yes" | "no"', "yes|no"),
        ('root ::= [0-9]+ "."', r"[0-9]+\."),
        ('root ::= item ("," item){2,4}\nitem ::= [a-f]{3}', "[a-f]{3}(,[a-f]{3}){2,4}"),
        ('root ::= "the " [^a-z]{5} "é😀"', "the [^a-z]{5}é😀"),
        ('# a comment\nroot ::= (\n  "x" |\n  "y"\n)*  "!"', "[xy]*!"),
    ],
)
def test_every_text_matches(noise, grammar, pattern, config):
    """A model that says noise says what the grammar wants."""
    for seed in range(5):
        text = generate(noise, grammar, seed=seed, **config)
        full = re.fullmatch(pattern, text)
        # A repetition may go on until max_tokens.
        assert full or len(text) >= 50, text


def test_greedy_takes_the_likeliest_that_is_allowed():
    """The alphabet goes on with d; e and above are allowed, and the likeliest of these is the same for every model that
    says nothing about them: the first."""
    with abi.Context(recall.bundle("llama")) as context:
        assert generate(context, 'root ::= [d-z]+ "."', prompt="Aabc", max_tokens=8) == "defghijk"


def test_a_grammar_that_allows_what_comes_anyway_changes_nothing(noise):
    with noise.open(max_tokens=40, context_size=256) as stream:
        stream.prefill(noise.tokenize("abc"))
        plain = stream.generate()
    assert generate(noise, "root ::= [^\\x00]*", max_tokens=40) == plain or "\ufffd" in plain


def test_the_grammar_starts_again_with_each_generation(noise):
    with noise.open(gbnf_grammar='root ::= "<" [a-z] ">"', context_size=256) as stream:
        for _ in range(3):
            stream.prefill(noise.tokenize("abc", add_special=False))
            assert re.fullmatch("<[a-z]>", stream.generate())
        stream.prefill(noise.tokenize("abc", add_special=False))
        stream.next()
        stream.reset()
        stream.prefill(noise.tokenize("abc"))
        assert re.fullmatch("<[a-z]>", stream.generate())


def test_a_complete_grammar_ends_the_generation():
    """Without an end-of-generation token being likely: nothing else is allowed."""
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        with context.open(gbnf_grammar='root ::= "qq"', context_size=64) as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == "qq"
            stats = stream.stats()
            assert stats["stop_reason"] == "end_of_generation"


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("root :: x", "line 1, column 6: expecting ::="),
        ('root ::= "a"\nb = "c"', "line 2, column 3: expecting ::="),
        ('root ::= ("a"', "line 1, column 14: expecting '\\)'"),
        ('root ::= "a" )', "line 1, column 14: expecting newline or end"),
        ("root ::= *", "line 1, column 11: expecting preceding item"),
        ('root ::= "\\q"', "unknown escape"),
        ('root ::= "a', "unexpected end of input"),
        ("root ::= missing", "Undefined rule identifier 'missing'"),
        ('start ::= "a"', "root"),
        ("root ::= root", "recursion"),
        ('root ::= "a"{2001}', "line 1, column 13: 2001 repetitions, where 2000 is the most"),
        ('root ::= "a"{2001,}', "line 1, column 13: 2001 repetitions, where 2000 is the most"),
        ('root ::= "a"{1,2001}', "line 1, column 13: 2001 repetitions, where 2000 is the most"),
        ('root ::= ("a" | "b"){0,5000} "c"', "column 21: 5000 repetitions, where 2000 is the most"),
        ('root ::= "a"{5,3}', "line 1, column 13: a repetition of at least 5 and at most 3 times"),
    ],
)
def test_a_grammar_that_is_wrong(noise, grammar, message):
    with pytest.raises(abi.Error, match=f"gbnf_grammar .*{message}"):
        generate(noise, grammar)


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000,
        "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(100_000)) + 'r100000 ::= "a"',
    ],
)
def test_a_grammar_that_would_exhaust_the_stack(grammar):
    @isolated
    def check():
        with abi.Context(models.bundle("tiny_llama_random")) as context:
            with pytest.raises(abi.Error, match="gbnf_grammar .*(groups nested deeper|more than)"):
                generate(context, grammar)

    check()


def test_json_schemas(noise):
    """Fifty outputs of a model that says noise, each of which the schema accepts."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 3},
            "ok": {"type": "boolean"},
        },
        "required": ["name", "age", "tags", "ok"],
        "additionalProperties": False,
    }
    grammar = noise.library.call_for_string("json_schema_to_gbnf", json.dumps(schema).encode())
    with noise.open(gbnf_grammar=grammar, temperature=1.0, max_tokens=220, context_size=256) as stream:
        for seed in range(50):
            stream.library.llm_stream_set_seed(stream.handle, ctypes.c_uint64(seed))
            stream.prefill(noise.tokenize("abc"))
            value = json.loads(stream.generate())
            assert set(value) == {"name", "age", "tags", "ok"}
            assert isinstance(value["name"], str) and len(value["name"]) <= 6
            assert isinstance(value["age"], int) and 0 <= value["age"] <= 150
            assert 1 <= len(value["tags"]) <= 3 and set(value["tags"]) <= {"a", "b", "c"}
            assert isinstance(value["ok"], bool)
            stream.reset()
