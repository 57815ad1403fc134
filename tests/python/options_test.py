"""The options of a generation, and stop strings."""

from __future__ import annotations

import math

import elizainference as eliza
import pytest
from elizainference import _options
from elizainference._stop import StopStrings
from hypothesis import given
from hypothesis import strategies as st

DEFAULTS = _options.DEFAULTS


def test_every_option_has_a_default():
    assert DEFAULTS.keys() | _options.ALIASES.keys() == eliza.Options.__annotations__.keys()
    assert _options.merge(DEFAULTS, DEFAULTS) == DEFAULTS


def test_every_option_reaches_the_config():
    values = {
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "repeat_penalty": 1.1,
        "grammar": "root ::= [a-z]",
        "disable_thinking": True,
        "n_gpu_layers": -1,
        "context_size": 512,
        "cache_type_k": "q8_0",
        "cache_type_v": "f16",
        "mtp_drafter_path": "mtp/drafter.gguf",
        "draft_max": 4,
        "draft_min": 1,
        "prompt_cache_key": "chat",
        "slot_id": 2,
    }
    assert values.keys() == DEFAULTS.keys() - {"seed", "stop", "raw", "json_schema"}
    expected = {**values, "mtp_drafter_path": b"mtp/drafter.gguf"}
    expected["gbnf_grammar"] = expected.pop("grammar")
    assert _options.stream_config(_options.merge(DEFAULTS, values)) == expected


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("max_tokens", [0, 1, 2**31 - 1, None], [-1, 2**31, 1.5, "3", True]),
        ("top_k", [0, 40], [-1, 0.5]),
        ("seed", [None, 0, 2**64 - 1], [-1, 2**64, 1.0]),
        ("n_gpu_layers", [-1, 0, 99], [-2]),
        ("context_size", [0, 8192], [-1]),
        ("temperature", [0, 0.7, 100], [-0.1, math.nan, math.inf, 1e39, 10**400, "1", True, None]),
        ("top_p", [0, 0.5, 1], [1.1, -0.1, math.nan]),
        ("repeat_penalty", [0, 1, 1.3], [-1, math.inf]),
        ("stop", ["x", ["x", "y"], (), [], None], ["", [""], [1], 5, {"x": 1}]),
        ("grammar", [None, "root ::= [a]"], ["", "a\0b", "\ud83d", 5]),
        ("raw", [True, False], ["no", 0, 1, None]),
        ("disable_thinking", [True, False], ["False", None]),
        (
            "json_schema",
            [None, {}, {"type": "null"}, "{}"],
            ["", "a\0b", "\ud83d", 5, [], True, {"x": math.nan}, {"x": object()}],
        ),
        ("slot_id", [None, -1, 0, 7], [-2, 0.5]),
        ("prompt_cache_key", [None, "chat"], ["", "a\0b", "\ud83d", 5]),
        ("cache_type_k", [None, "q8_0"], ["", 8]),
        ("mtp_drafter_path", [None, "d.gguf"], ["", "a\0b", 1]),
    ],
)
def test_ranges(name, good, bad):
    for value in good:
        _options.merge(DEFAULTS, {name: value})
    for value in bad:
        with pytest.raises(eliza.InvalidArgument, match=name):
            _options.merge(DEFAULTS, {name: value})


def test_none_is_no_limit_and_no_stop_string():
    merged = _options.merge({**DEFAULTS, "max_tokens": 5, "stop": ("x",)}, {"max_tokens": None, "stop": None})
    assert (merged["max_tokens"], merged["stop"]) == (0, ())


@pytest.mark.parametrize("name", sorted(_options._ELSEWHERE))
def test_names_of_other_libraries(name):
    assert _options._ELSEWHERE[name] in eliza.Options.__annotations__ and name not in eliza.Options.__annotations__
    with pytest.raises(eliza.InvalidArgument, match=f"did you mean {_options._ELSEWHERE[name]}?"):
        _options.merge(DEFAULTS, {name: 1})


def test_draft_min_above_draft_max():
    with pytest.raises(eliza.InvalidArgument, match="draft_min is 3 and draft_max 2"):
        _options.merge(DEFAULTS, {"draft_min": 3, "draft_max": 2})


def config(**options) -> dict:
    return _options.stream_config(_options.merge(DEFAULTS, options))


def test_a_drafter_drafts_unless_told_otherwise():
    assert config()["draft_max"] == 0
    assert config(mtp_drafter_path="d.gguf")["draft_max"] == 4
    assert config(mtp_drafter_path="d.gguf", draft_min=6)["draft_max"] == 6
    assert config(mtp_drafter_path="d.gguf", draft_max=0)["draft_max"] == 0


def test_drafter_is_the_other_name():
    assert config(drafter="d.gguf") == config(mtp_drafter_path="d.gguf")
    with pytest.raises(eliza.InvalidArgument, match="another name of mtp_drafter_path"):
        config(drafter="d.gguf", mtp_drafter_path="d.gguf")
    with pytest.raises(eliza.InvalidArgument, match="did you mean drafter?"):
        config(draftr="d.gguf")


def test_a_cache_key_has_a_slot_of_its_own():
    assert config()["slot_id"] == -1
    assert config(prompt_cache_key="chat")["slot_id"] == 0
    assert config(prompt_cache_key="chat", slot_id=3)["slot_id"] == 3


def test_a_grammar_and_a_schema_replace_each_other():
    with_grammar = _options.merge(DEFAULTS, {"grammar": "root ::= [a]"})
    with_schema = _options.merge(with_grammar, {"json_schema": {}})
    assert (with_schema["grammar"], with_schema["json_schema"]) == (None, "{}")
    assert _options.merge(with_schema, {"grammar": "root ::= [b]"})["json_schema"] is None
    # None takes away its own, and not the other.
    assert _options.merge(with_schema, {"grammar": None})["json_schema"] == "{}"
    with pytest.raises(eliza.InvalidArgument, match="one of them"):
        _options.merge(DEFAULTS, {"grammar": "root ::= [a]", "json_schema": {}})


class Model:
    """As much of a Pydantic model as an option needs."""

    @classmethod
    def model_json_schema(cls) -> dict:
        return {"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "null"}}}


class Adapter:
    """The same of Pydantic's TypeAdapter."""

    def json_schema(self) -> dict:
        return {"type": "array"}


def test_a_pydantic_model_is_a_schema():
    merged = _options.merge(DEFAULTS, {"json_schema": Model})
    assert merged["json_schema"] == '{"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "null"}}}'
    assert _options.merge(DEFAULTS, {"json_schema": Adapter()})["json_schema"] == '{"type": "array"}'
    with pytest.raises(eliza.InvalidArgument, match="Pydantic"):
        _options.merge(DEFAULTS, {"json_schema": int})


def _cut_off(text: str, strings: list[str]) -> str:
    ends = [text.index(string) for string in strings if string in text]
    return text[: min(ends)] if ends else text


@given(
    pieces=st.lists(st.text("ab", max_size=4), max_size=12),
    strings=st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_stop_strings_across_pieces(pieces, strings):
    stop = StopStrings(strings)
    shown = ""
    received = ""
    for piece in pieces:
        received += piece
        shown += stop.push(piece)
        # Nothing is shown that would have to be taken back, and nothing is held that is sure.
        assert _cut_off(received, strings).startswith(shown)
        if stop.found:
            break
    if not stop.found:
        shown += stop.flush()
    assert shown == _cut_off(received, strings)
    assert stop.found == any(string in received for string in strings)
