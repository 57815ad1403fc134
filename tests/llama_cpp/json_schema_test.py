"""A JSON schema becomes a grammar whole, or an error that names what cannot: nothing is left out without a word."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import abi, models


@pytest.fixture(scope="module")
def noise():
    """A model that says anything at all, so whatever an answer has of form is the grammar's."""
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        yield context


def convert(schema) -> str:
    return abi.load().call_for_string("json_schema_to_gbnf", json.dumps(schema).encode())


def answer(context: abi.Context, schema, seed: int = 1, max_tokens: int = 400) -> str | None:
    """What the model says under the schema; None where it did not come to an end."""
    config = {"gbnf_grammar": convert(schema), "temperature": 1.0, "max_tokens": max_tokens, "context_size": 512}
    with context.open(**config) as stream:
        stream.library.llm_stream_set_seed(stream.handle, seed)
        stream.prefill(context.tokenize("abc"))
        text = stream.generate()
        stats = stream.stats()
        return text if stats["stop_reason"] == "end_of_generation" else None


A = {"properties": {"a": {"const": 1}}}
# {name: (schema, keyword, path)}
LEFT_OUT = {
    "number": ({"type": "number", "minimum": 1}, "minimum", "#"),
    "number, inside": ({"properties": {"x": {"type": "number", "multipleOf": 5}}}, "multipleOf", "#/properties/x"),
    "multiples": ({"type": "integer", "multipleOf": 5}, "multipleOf", "#"),
    "two minima": ({"type": "integer", "minimum": 1, "exclusiveMinimum": 3}, "exclusiveMinimum", "#"),
    "no type": ({"minimum": 1}, "minimum", "#"),
    "no type, required": ({"required": ["a"]}, "required", "#"),
    "items": ({"type": "array", "items": {"uniqueItems": True}}, "uniqueItems", "#/items"),
    "unique": ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, "uniqueItems", "#"),
    "contains": ({"type": "array", "contains": {"const": 1}}, "contains", "#"),
    "tuple and rest": ({"prefixItems": [{"const": 1}], "items": {"const": 2}}, "prefixItems", "#"),
    "tuple too short": ({"prefixItems": [{"const": 1}], "minItems": 2}, "minItems", "#"),
    "tuple too long": ({"items": [{"const": 1}, {"const": 2}], "maxItems": 1}, "maxItems", "#"),
    "many items": ({"type": "array", "maxItems": 2001}, "maxItems", "#"),
    "long": ({"type": "string", "maxLength": 5000}, "maxLength", "#"),
    "pattern of a length": ({"type": "string", "pattern": "^a*$", "maxLength": 3}, "maxLength", "#"),
    "pattern in a format": ({"type": "string", "pattern": "^a*$", "format": "date"}, "format", "#"),
    "format of a length": ({"type": "string", "format": "date", "minLength": 12}, "minLength", "#"),
    "format": ({"type": "string", "format": "email"}, "format", "#"),
    "lookahead": ({"type": "string", "pattern": "^(?!a)b$"}, "pattern", "#"),
    "backreference": ({"anyOf": [{"pattern": r"^(a)\1$"}]}, "pattern", "#/anyOf/0"),
    "Unicode property": ({"pattern": r"^\p{L}$"}, "pattern", "#"),
    "word boundary": ({"pattern": r"^\ba$"}, "pattern", "#"),
    "repetitions": ({"pattern": "^a{2001}$"}, "pattern", "#"),
    "required elsewhere": (A | {"required": ["b"]}, "required", "#"),
    "pattern properties": ({"type": "object", "patternProperties": {"^a": {"const": 1}}}, "patternProperties", "#"),
    "names": ({"type": "object", "propertyNames": {"maxLength": 3}}, "propertyNames", "#"),
    "dependencies": (A | {"dependentRequired": {"a": ["b"]}}, "dependentRequired", "#"),
    "few": ({"type": "object", "minProperties": 1}, "minProperties", "#"),
    "many": ({"type": "object", "maxProperties": 1}, "maxProperties", "#"),
    "unevaluated": ({"type": "object", "unevaluatedProperties": False}, "unevaluatedProperties", "#"),
    "not": (A | {"not": {"required": ["a"]}}, "not", "#"),
    "if": (A | {"if": A, "then": A}, "if", "#"),
    "beside ref": ({"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": {"type": "string"}}}, "maxLength", "#"),
    "behind refs": (
        {
            "properties": {"x": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "number", "maximum": 3}},
        },
        "maximum",
        "#/$defs/b",
    ),
    "a type beside ref": (
        {"type": "null", "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        "type",
        "#",
    ),
    "beside anyOf": ({"anyOf": [{"type": "string"}], "maxLength": 3}, "maxLength", "#"),
    "a type beside anyOf": ({"type": "string", "anyOf": [{"type": "string"}, {"type": "null"}]}, "type", "#"),
    "anyOf and oneOf": ({"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}, "anyOf", "#"),
    "oneOf of the same": ({"oneOf": [{"type": "string"}, {"type": ["null", "string"]}]}, "oneOf", "#"),
    "oneOf of numbers": ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "oneOf", "#"),
    "enum of a type": ({"type": "string", "enum": ["a", 1]}, "enum", "#"),
    "const of a type": ({"type": "string", "const": None}, "const", "#"),
    "enum and pattern": ({"enum": ["a", "b"], "pattern": "^a$"}, "pattern", "#"),
    "allOf beside": (A | {"allOf": [A]}, "allOf", "#"),
    "allOf of a number": ({"type": "integer", "allOf": [{"minimum": 1}]}, "allOf", "#"),
    "allOf of strings": ({"allOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, "allOf", "#/allOf/0"),
    "allOf behind refs": (
        {
            "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"z": {"const": 1}}}],
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [A, {"properties": {"y": {"const": 1}}}]}},
        },
        "allOf",
        "#/allOf/0",
    ),
    "allOf of anyOf": ({"allOf": [A, {"anyOf": [{"properties": {"b": {}}}]}]}, "allOf", "#/allOf/1"),
    "allOf twice": ({"allOf": [A, A]}, "allOf", "#/allOf/1"),
    "allOf, closed": (
        {"allOf": [A | {"additionalProperties": False}, {"properties": {"b": {}}}]},
        "additionalProperties",
        "#/allOf/0",
    ),
    "allOf of an enum": ({"allOf": [{"enum": [1]}, A]}, "allOf", "#"),
    "allOf of enums apart": ({"allOf": [{"enum": [1]}, {"enum": [2]}]}, "allOf", "#"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_grammar_cannot_say_is_named(name):
    schema, keyword, path = LEFT_OUT[name]
    with pytest.raises(abi.Error) as error:
        convert(schema)
    assert error.value.status == abi.INVALID_ARG
    assert error.value.message.startswith(f"no GBNF grammar for this JSON schema: at {path}: ")
    assert f"'{keyword}'" in error.value.message


# What says nothing, and what the converter does honour.
KEPT = {
    "annotations": {"type": "boolean", "title": "x", "description": "y", "default": True, "examples": [1], "x-own": 1},
    "beside ref": {"$ref": "#/$defs/a", "description": "y", "$defs": {"a": {"enum": [1, 2]}}},
    "a type beside ref": {"type": "integer", "$ref": "#/$defs/a", "$defs": {"a": {"enum": [1, 2]}}},
    "empty": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "null"}, "uniqueItems": False, "maxItems": 2}},
        "required": [],
        "minProperties": 0,
    },
    "a type beside anyOf": {"type": "string", "anyOf": [{"enum": ["a"]}, {"type": "string", "maxLength": 2}]},
    "properties enough": A | {"required": ["a"], "minProperties": 1, "maxProperties": 1},
    "oneOf by type": {"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}, {"type": "null"}]},
    "oneOf by constant": {
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "null"}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "b"}, "y": {"type": "null"}}, "required": ["kind"]},
        ]
    },
    "allOf of one": {"allOf": [{"$ref": "#/$defs/name"}], "$defs": {"name": {"type": "string", "maxLength": 4}}},
    "allOf of one, behind refs": {
        "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}]}},
        "required": ["x"],
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"enum": [3, 4]}]}},
    },
    "allOf of objects": {"allOf": [A, {"properties": {"b": {"enum": [2, 3]}}, "required": ["b"]}]},
    "allOf of enums": {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]},
    "references that look alike": {
        "properties": {"x": {"$ref": "#/$defs/a.b"}, "y": {"$ref": "#/$defs/a-b"}},
        "required": ["x", "y"],
        "$defs": {"a.b": {"const": 1}, "a-b": {"const": 2}},
    },
    "names of signs": {
        "type": "object",
        "properties": {name: {"type": "null"} for name in ['"', "\\", "^", "]", "-", "a\nb", "é", "\U0001f600"]},
        "additionalProperties": {"type": "boolean"},
    },
    "characters": {"type": "string", "minLength": 3, "maxLength": 3},
    "recursive": {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "anyOf": [
                    {"type": "null"},
                    {"type": "array", "items": {"$ref": "#/$defs/tree"}, "minItems": 1, "maxItems": 2},
                ]
            }
        },
    },
}


def check(schema, text: str) -> None:
    jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator)


@pytest.mark.parametrize("name", KEPT)
def test_what_a_grammar_says_is_what_the_schema_wants(noise, name):
    answers = [answer(noise, KEPT[name], seed) for seed in range(24)]
    ended = [text for text in answers if text is not None]
    assert ended
    for text in ended:
        check(KEPT[name], text)


PATTERNS = [
    "^abc$", "^a", "^$", "^(a|bc)+$", "^(?:x|)y$", "^.{1,5}$", r"^\d{3}-\d{2,4}$",
    r"^\w+\s\w+$", r"^[^a-y]$", r'^["\\]{2}$', r"^\\\"$", r"^[\w.-]+@[a-z]+\.com$", r"^\S{2}$", r"^[^\s]$",
    r"^[\S]$", r"^\D$",
    r"^[ -~]{4}$",
    r"^\n\t\/$", r"^\x41\u0042\u{43}$", "^[é-ü]{2}$", "^\U0001f600$", r"^\uD83D\uDE00$", "^(?<year>[0-9]{4})$",
    "^a*?b+?c??$", "^[^\\]\\[]$", "^a{2}b{1,}c{0,1}$", "^((a|b)c){2}$", "^[.*+?(){}|^$]$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(noise, pattern):
    """As ECMA-262 reads them, and as text that is JSON."""
    # Python reads the same, but for how it writes two things.
    same = re.sub(r"\\u\{(\w+)\}", r"\\x\1", pattern).replace("(?<year>", "(?P<year>").replace(r"\/", "/")
    same = same.replace(r"\uD83D\uDE00", "\U0001f600")
    schema = {"type": "string", "pattern": pattern, "description": "said by noise"}
    ended = 0
    for seed in range(6):
        text = answer(noise, schema, seed)
        if text is None:  # a pattern that bounds nothing: a string that goes on
            continue
        ended += 1
        assert re.search(same, json.loads(text), re.ASCII), text
    assert ended > 0


def test_open_patterns():
    """Where no anchor is, any text: more of it than a model of noise would ever end."""

    def root(pattern: str) -> str:
        (line,) = (line for line in convert({"pattern": pattern}).splitlines() if line.startswith("root ::= "))
        return line.removeprefix('root ::= "\\"" ((').removesuffix(')) "\\""')

    anything = root("").split(" ([")[0]
    assert anything.startswith("([") and anything.endswith(")*")
    assert root("") == f"{anything} {anything}"
    assert root("abc") == rf"{anything} [\x61] [\x62] [\x63] {anything}"
    assert root("^a") == rf"[\x61] {anything}"
    assert root("c$") == rf"{anything} [\x63]"
    assert root("^a|b$") == rf"[\x61] {anything} | {anything} [\x62]"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("^(a$", "'\\)' is missing, at offset 3|anchor inside"),
        ("^a)$", "a '\\)' that closes nothing, at offset 2"),
        ("^*$", "nothing to repeat, at offset 1"),
        ("^[a$", "a '\\]' is missing"),
        ("^[b-a]$", "a range that ends before it begins"),
        ("^[\\d-z]$", "a range from or to a class"),
        ("^a{,2}$", "a number is missing"),
        ("^a{2$", "a '}' is missing"),
        ("a^b", "an anchor inside"),
        ("a\\", "a backslash at the end"),
        ("\\uD83Dx", "JSON text cannot hold"),
        ("\\q", "the escape \\\\q is not supported"),
        ("[^\\s\\S]", "JSON text cannot hold"),
        ("(?i)a", "lookaround and flags are not supported"),
    ],
)
def test_patterns_that_are_wrong(pattern, why):
    with pytest.raises(abi.Error, match=f"at #: 'pattern' .*({why})"):
        convert({"pattern": pattern})


# --- any schema ----------------------------------------------------------------------------------

_strings = st.builds(
    lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
    st.integers(0, 3),
    st.integers(0, 3),
)
_integers = st.builds(
    lambda least, more: {"type": "integer", "minimum": least, "maximum": least + more},
    st.integers(-2000, 2000),
    st.integers(0, 3000),
)
_leaves = st.one_of(
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": "integer"}, {"type": "number"}]),
    st.sampled_from([{"enum": [1, "a", None]}, {"const": {"a": [1]}}, {"type": "string", "format": "date"}]),
    st.sampled_from([{"pattern": "^[a-c]{2}$"}, {"type": ["null", "boolean"]}, {"type": "string", "pattern": "x?$"}]),
    _strings,
    _integers,
)
_names = st.sampled_from(["a", "b", "ab", "é", 'q"', "x.y", "x-y"])


def _object(properties: dict, required: list, additional: int) -> dict:
    schema = {"type": "object", "properties": properties}
    schema["required"] = [name for name, keep in zip(properties, required, strict=False) if keep]
    return schema | [{}, {"additionalProperties": False}][additional]


def _compound(children):
    return st.one_of(
        st.builds(
            _object,
            st.dictionaries(_names, children, max_size=3),
            st.lists(st.booleans(), max_size=3),
            st.integers(0, 1),
        ),
        st.builds(
            lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
            children,
            st.integers(0, 1),
            st.integers(0, 2),
        ),
        st.builds(lambda items: {"type": "array", "prefixItems": items}, st.lists(children, min_size=1, max_size=2)),
        st.builds(lambda all: {"anyOf": all}, st.lists(children, min_size=1, max_size=2)),
        st.builds(lambda all: {"oneOf": all}, st.lists(children, min_size=1, max_size=2)),
        st.builds(lambda all: {"allOf": all}, st.lists(children, min_size=1, max_size=2)),
    )


# What may or may not constrain a schema that it is added to.
_EXTRAS = [
    {"minimum": 3}, {"exclusiveMaximum": 10}, {"multipleOf": 3}, {"minLength": 2}, {"maxLength": 1}, {"pattern": "a"},
    {"format": "time"}, {"uniqueItems": True}, {"minItems": 1}, {"maxItems": 1}, {"contains": {"const": 1}},
    {"required": ["a"]}, {"minProperties": 1}, {"maxProperties": 1}, {"propertyNames": {"maxLength": 1}},
    {"patternProperties": {"a": {"type": "null"}}}, {"additionalProperties": {"type": "null"}},
    {"not": {"type": "null"}},
    {"const": 1}, {"enum": [1, "a"]}, {"type": "integer"}, {"type": ["string", "null"]}, {"items": {"const": 1}},
    {"anyOf": [{"type": "string", "maxLength": 2}]}, {"allOf": [{"type": "null"}]}, {"$ref": "#/$defs/other"},
]  # fmt: skip
_extra = st.one_of(st.just({}), st.just({}), st.sampled_from(_EXTRAS))
_schemas = st.builds(
    lambda schema, extra: schema | extra,
    st.recursive(
        _leaves,
        lambda children: _compound(st.builds(lambda schema, extra: schema | extra, children, _extra)),
        max_leaves=5,
    ),
    _extra,
)


def test_whatever_becomes_a_grammar_is_what_the_schema_wants(noise):
    validated = []

    @settings(max_examples=250, deadline=None, derandomize=True, database=None)
    @given(_schemas, st.integers(0, 2**32))
    def try_one(schema, seed):
        schema = schema | {"$defs": {"other": {"type": "string", "maxLength": 2}}}
        try:
            text = answer(noise, schema, seed, max_tokens=200)
        except abi.Error as error:
            assert error.status == abi.INVALID_ARG
            assert "no GBNF grammar" in error.message or "recursion" in error.message
            return
        if text is None:
            return
        check(schema, text)
        validated.append(text)

    try_one()
    assert len(validated) >= 50
