"""Grammars and JSON schemas that were made to exhaust memory, time or the stack are refused, in words."""

from __future__ import annotations

import json
import re
import threading

import pytest

from tests.support import abi, models
from tests.support.isolated import isolated

# musl's threads have no more, and those of many language runtimes not much.
SMALL_STACK = 512 * 1024


def on_a_small_stack(body):
    """What `body` returns, or raises, on a thread with a small stack."""
    outcome = []

    def run():
        try:
            outcome.append((body(), None))
        except Exception as error:
            outcome.append((None, error))

    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def open_grammar(grammar: str, text: str = "abc", **config) -> str:
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        with context.open(gbnf_grammar=grammar, max_tokens=16, context_size=128, **config) as stream:
            stream.prefill(context.tokenize(text))
            return stream.generate()


def convert(schema) -> str:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return abi.load().call_for_string("json_schema_to_gbnf", text.encode())


def refused(body, message: str) -> None:
    """`body` is refused with one line of reasonable length, on a small stack as well, and does not end the process."""

    @isolated
    def check():
        with pytest.raises(abi.Error, match=message) as caught:
            on_a_small_stack(body)
        assert caught.value.status in (None, abi.INVALID_ARG)
        assert "\n" not in caught.value.message and len(caught.value.message) < 1500

    check()


def accepted(body) -> None:
    """`body` runs through, on a small stack as well."""
    isolated(lambda: on_a_small_stack(body))()


def rule_chain(count: int, rest: str = "") -> str:
    return "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}{rest}\n" for i in range(count)) + f'r{count} ::= "a"'


GRAMMARS = {
    "backwards": ('root ::= "x"\nb ::= "a"{5,3}', r"line 2, column 10: a repetition of at least 5 and at most 3 times"),
    "long number": ('root ::= "a"{99999999999999999999999}', r"line 1, column 14: number of more than 10 digits"),
    "long maximum": ('root ::= "a"{1,99999999999999999999999}', r"line 1, column 16: number of more than 10 digits"),
    "long token": ("root ::= <[99999999999999999999999]>", r"line 1, column 12: number of more than 10 digits"),
    "no token": ("root ::= <nosuchtoken at all>", r"line 1, column 10: not a token of this model"),
    "written out": ('root ::= "' + "a" * 10_000 + '"{2000}', "line 1, column .* more than 1048576 elements"),
    "many repetitions": ("root ::= " + '"a"{0,1999} ' * 1000, "more than 1048576 elements"),
    "groups": ("root ::= " + "(" * 201 + '"a"' + ")" * 201, "line 1, column 210: groups nested deeper than 200"),
    "groups behind a quoted token": ('root ::= <">' + "(" * 100_000, "line 1, column"),
    "size": ('root ::= "a" # ' + "x" * (1 << 20), "more than 1048576 bytes: 1048591"),
    "long name": ("root ::= " + "x" * 100_000, "Undefined rule identifier 'x{100}'"),
    "periodic": ("root ::= <" + " at " * 200_000 + ">", "not a token of this model"),
    "left recursion": ('root ::= root "a" | "b"', "left recursion: the rule 'root'"),
    "behind an option": ('root ::= e root "a" | "b"\ne ::= "z"?', "left recursion: the rule 'root'"),
    "behind an empty chain": (
        'root ::= ws root "a" | "b"\nws ::= ws1\nws1 ::= ws2 ws2\nws2 ::= [ ]*',
        "left recursion: the rule 'root'",
    ),
    "through another": ('root ::= e b | "c"\nb ::= e root "x"\ne ::= "z"?', "left recursion: the rule '(root|b)'"),
    "itself": ("root ::= root", "left recursion"),
    "long cycle": (rule_chain(5000).replace('"a"', "root"), "left recursion"),
    "deep": (rule_chain(20_000, ' "x"'), "too deep or too ambiguous"),
    "doubling": (
        "root ::= x0\n" + "".join(f"x{i} ::= x{i + 1} x{i + 1} | x{i + 1}\n" for i in range(24)) + 'x24 ::= "a"',
        "too deep or too ambiguous",
    ),
    "exponential start": (
        "root ::= r0\n" + "".join(f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"\n' for i in range(40)) + 'r40 ::= "a"',
        "too deep or too ambiguous",
    ),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_hostile_grammar(name):
    grammar, message = GRAMMARS[name]
    refused(lambda: open_grammar(grammar), f"gbnf_grammar .*{message}")


def test_a_grammar_that_gets_too_ambiguous_with_the_text():
    """Each character doubles the ways to read what was said so far."""
    grammar = 'root ::= s\ns ::= [^\\x00] s "x" | [^\\x00] s "y" | [^\\x00] s "z" | "q"'

    def body():
        with abi.Context(models.bundle("tiny_llama_random")) as context:
            with context.open(gbnf_grammar=grammar, max_tokens=60, context_size=256) as stream:
                stream.prefill(context.tokenize("abc"))
                stream.generate()

    refused(body, "gbnf_grammar cannot be followed: too deep or too ambiguous")


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        (rule_chain(5000), "a"),
        (rule_chain(1000, ' "b"'), "ab*"),
        ("root ::= " + "(" * 200 + '"a"' + ")" * 200, "a"),
        ('root ::= (("a"*)*)* "."', r"a*\.?"),
        ('root ::= ws "a" ws\nws ::= ws1\nws1 ::= [ ]*', " *a? *"),
        ('root ::= e "a" root | "b"\ne ::= "z"?', "(z?a)*z?b?"),
        ('root ::= "a"{3,3} "b"{0,2} "c"{0}', "aaab{0,2}"),
        ('root ::= "a"{2000}', "a*"),
    ],
    ids=["chain", "deep chain", "groups", "stars", "space", "option", "repetitions", "long"],
)
def test_a_grammar_that_only_looks_hostile(grammar, pattern):
    def body():
        text = open_grammar(grammar)
        assert re.fullmatch(pattern, text), text

    accepted(body)


def ref_chain(links: int) -> dict:
    return {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(links)}
        | {f"d{links}": {"type": "null"}},
    }


def doubling(levels: int) -> dict:
    schema: dict = {"type": "null"}
    for _ in range(levels):
        schema = {"type": ["object", "object"], "properties": {"a": schema}}
    return schema


def doubling_refs(levels: int) -> dict:
    """A $ref that leads to 2**levels others, were they followed one by one, in a oneOf that asks for their types."""
    return {
        "oneOf": [{"$ref": "#/$defs/d0"}, {"type": "null"}],
        "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
        | {f"d{levels}": {"type": "null"}},
    }


NESTED = "nested deeper than 64 levels, \\$ref included"
SCHEMAS = {
    "ref chain 200": (ref_chain(200), NESTED),
    "ref chain 3000": (ref_chain(3000), NESTED),
    "ref to itself in allOf": (
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}},
        "back to itself",
    ),
    "brackets": ("[" * 100_000, "nested deeper than 200 levels"),
    "types of types": (doubling(30), "more than 4096 schemas"),
    "anyOf": ({"anyOf": [{"pattern": "^a$"}] * 5000}, "more than 4096 schemas"),
    "size": ({"description": "x" * (256 << 10)}, "more than 262144 bytes"),
    "grammar": (
        {"properties": {"a" * 500: {"properties": {f"{i}": {"type": "null"} for i in range(3000)}}}},
        "the grammar would have more than 1048576 bytes",
    ),
    "pattern": ({"pattern": "^a" + "*" * 200_000 + "$"}, "it has more than 4096 bytes"),
    "name": ({"properties": {"n" * 50_000: {}}, "additionalProperties": True}, "name has more than 150 characters"),
    "items": (
        {"properties": {"a": {"type": "array", "items": {}, "minItems": 5, "maxItems": 3}}},
        "at #/properties/a: minItems 5 is greater than maxItems 3",
    ),
    "length": ({"type": "string", "minLength": 5, "maxLength": 3}, "minLength 5 is greater than maxLength 3"),
    "integer": ({"type": "integer", "minimum": 5, "maximum": 3}, "minimum 5 is greater than maximum 3"),
    "exclusive": (
        {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 5},
        "minimum 5 is greater than maximum 4",
    ),
    "repetition": ({"pattern": "^a{5,3}$"}, "a repetition of at least 5 and at most 3, at offset"),
    "digits": ({"type": "integer", "minimum": 10**17}, "more digits than"),
    "groups": ({"pattern": "^" + "(" * 100 + "a" + ")" * 100 + "$"}, "groups are nested deeper than 40"),
    "types in types": (doubling_refs(20), "'oneOf' wants exactly one to match"),
    "oneOf": ({"oneOf": [{"const": i} for i in range(3000)]}, "'oneOf' has more than 100 alternatives"),
    "constants": ({"oneOf": [{"enum": [1] * 30_000}, {"enum": [2] * 30_000}]}, "'oneOf' wants exactly one to match"),
    "common constants": ({"allOf": [{"enum": [1] * 30_000}] * 2}, "'allOf' of enums with too many values to compare"),
    "no schema": ({"properties": {"a": 5}}, "at #/properties/a: schema must be an object"),
    "no JSON": ("{", "parse error"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_hostile_schema(name):
    schema, message = SCHEMAS[name]
    refused(lambda: convert(schema), f"JSON schema.*{message}")


def test_the_message_has_no_second_title():
    with pytest.raises(abi.Error) as caught:
        convert({"type": "integer", "minimum": 5, "maximum": 3})
    assert caught.value.message == (
        "no GBNF grammar for this JSON schema: at #: minimum 5 is greater than maximum 3; change the schema"
    )


def test_a_property_name_of_other_characters():
    """Fifty thousand characters that a rule's name cannot have."""
    accepted(lambda: convert({"properties": {"$" * 50_000: {"type": "null"}}}))


def test_references_from_the_last_to_the_first():
    """Each is converted once, so that none leads through all the others."""
    accepted(
        lambda: convert(
            {
                "properties": {f"p{i}": {"items": {"$ref": f"#/$defs/d{i}"}} for i in reversed(range(200))},
                "$defs": ref_chain(200)["$defs"],
            }
        )
    )


def test_optional_properties():
    """Any of 1,000 may be there, in their order."""

    def body():
        grammar = convert({"properties": {f"p{i:03}": {"type": "null"} for i in range(1000)}})
        text = open_grammar(grammar)
        assert text.startswith("{")

    accepted(body)


def test_optional_properties_are_what_they_were():
    grammar = convert({"properties": {name: {"type": "null"} for name in "abc"}, "required": ["b"]})
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    assert rules["root"] == '"{" space b-kv ( "," space ( a-kv a-rest | c-kv ) )? space "}"'
    assert rules["a-rest"] == '( "," space c-kv )?'


@pytest.mark.parametrize(
    "schema",
    [
        ref_chain(25),
        {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}},
        {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
        {"type": "integer", "minimum": -(10**300), "exclusiveMaximum": 10**300},
        {"type": "integer", "minimum": 7, "maximum": 7},
        {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 2},
        {"type": "string", "maxLength": 0},
        {"type": ["object", "null"], "properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"n" * 140: {"type": "null"}}, "additionalProperties": True},
        {"enum": [f"value {i}" for i in range(2000)]},
    ],
    ids=["refs", "recursive", "int64", "beyond", "one", "two", "empty", "types", "name", "enum"],
)
def test_a_schema_that_only_looks_hostile(schema):
    accepted(lambda: open_grammar(convert(schema)))
