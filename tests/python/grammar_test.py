"""Answers that have to match a grammar or a JSON schema."""

from __future__ import annotations

import json
import re

import elizainference as eliza
import jsonschema
import pytest

from tests.support import models


@pytest.fixture(scope="module")
def noise():
    """A model that says anything at all, so whatever the answer has of form is the grammar's."""
    with eliza.Engine(models.bundle("tiny_llama_random"), raw=True, context_size=2048) as engine:
        yield engine


# Of bounded length, so that noise comes to an end.
NAME = {"type": "string", "minLength": 1, "maxLength": 12}
SCHEMAS = {
    "object": {
        "type": "object",
        "properties": {"name": NAME, "age": {"type": "integer"}, "member": {"type": "boolean"}},
        "required": ["name", "age", "member"],
        "additionalProperties": False,
    },
    "optional properties": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"enum": [1, "two", None]}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "properties": {"city": NAME, "at": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
                "required": ["city", "at"],
                "additionalProperties": False,
            }
        },
        "required": ["place"],
        "additionalProperties": False,
    },
    "array": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 4},
    "tuple": {"type": "array", "prefixItems": [{"type": "boolean"}, NAME], "minItems": 2, "maxItems": 2},
    "range": {"type": "integer", "minimum": -20, "maximum": 1234},
    "enum": {"enum": ["red", "grün", "\U0001f600", 5, None, {"a": [1]}]},
    "alternatives": {"anyOf": [{"type": "boolean"}, {"const": "neither"}, {"type": "null"}]},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"},
    "references": {
        "$defs": {
            "pair": {"type": "array", "items": {"$ref": "#/$defs/bit"}, "minItems": 2, "maxItems": 2},
            "bit": {"enum": [0, 1]},
        },
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/pair"}, "right": {"$ref": "#/$defs/pair"}},
        "required": ["left", "right"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_answers_match_their_schema(noise, name):
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    for seed in range(5):
        answer = noise.generate("abc", json_schema=schema, temperature=1.0, seed=seed)
        assert answer.stop_reason == "end_of_generation"
        jsonschema.validate(json.loads(answer.text), schema, jsonschema.Draft202012Validator)


def test_a_schema_as_text_is_the_same(noise):
    schema = SCHEMAS["object"]
    as_dict = noise.generate("abc", json_schema=schema, temperature=1.0, seed=1)
    assert noise.generate("abc", json_schema=json.dumps(schema), temperature=1.0, seed=1).text == as_dict.text


def test_properties_come_in_the_order_of_the_schema(noise):
    schema = {"type": "object", "properties": {"z": {"const": 1}, "a": {"const": 2}}, "required": ["z", "a"]}
    assert list(json.loads(noise.generate("abc", json_schema=schema).text)) == ["z", "a"]


def test_an_engine_can_answer_in_json_always():
    with eliza.Engine(models.bundle("tiny_llama_random"), json_schema={"const": [1, 2]}) as engine:
        assert json.loads(engine.generate("abc").text) == [1, 2]
        assert engine.generate("abc", grammar='root ::= "yes"').text == "yes"
        with engine.chat() as chat:
            assert json.loads(chat.generate("abc").text) == json.loads(chat.generate("def").text) == [1, 2]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_match_a_grammar(noise, temperature):
    grammar = 'root ::= word ("-" word){1,3} "."\nword ::= [a-f]{2}'
    for seed in range(5):
        text = noise.generate("abc", grammar=grammar, temperature=temperature, seed=seed).text
        assert re.fullmatch(r"[a-f]{2}(-[a-f]{2}){1,3}\.", text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"json_schema": "{"}, "JSON schema"),
        ({"json_schema": {"$ref": "#/$defs/nowhere"}}, "nowhere"),
        ({"json_schema": {"type": "nothing"}}, "nothing"),
        ({"grammar": "root ::= ("}, "line 1"),
        ({"grammar": 'other ::= "a"'}, "root"),
    ],
)
def test_what_is_wrong_is_said_at_once(noise, options, message):
    with pytest.raises(eliza.ElizaError, match=re.escape(message)):
        noise.stream("abc", **options)
