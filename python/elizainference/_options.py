"""The options of a generation: what there is, and what their values may be."""

from __future__ import annotations

import difflib
import json
import math
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from elizainference import _native
from elizainference._arguments import flag, path_bytes, shown, utf8
from elizainference._errors import InvalidArgument


class Options(TypedDict, total=False):
    """Keyword arguments of `Engine`, `Engine.stream` and `Engine.generate`; those of a call go before the engine's.

    An option that the chosen backend cannot honour, and that would change the form of the answer (a grammar, a
    drafter), is an error; one that only tunes it is listed in `Stats.ignored_options`.
    """

    max_tokens: int | None
    """Most tokens to generate. 0, the default, and None: until the text ends, or the context is full."""
    temperature: float
    """0, the default: always the likeliest token, so the same answer each time. Higher: more varied."""
    top_p: float
    """Sample among the likeliest tokens that together have this probability. 1, the default: off."""
    top_k: int
    """Sample among this many likeliest tokens. 0, the default: off."""
    repeat_penalty: float
    """Above 1: makes tokens of the last 64 less likely. 1, the default: off."""
    seed: int | None
    """Makes sampling repeatable: 0 to 2**64 - 1. None, the default: another one each time."""
    stop: str | Sequence[str] | None
    """Texts at which to end; none of them is part of the answer. Default, and None: none."""
    grammar: str | None
    """A GBNF grammar that the answer has to match."""
    json_schema: Mapping[str, Any] | str | type[Any] | None
    """A JSON schema, as a dict, as JSON text or as a Pydantic model; the answer is JSON that matches it. In place of
    `grammar`."""
    raw: bool
    """A string is the exact text to continue, special tokens such as <|im_start|> included, and not what a user says to
    a chat model. Default: False."""
    disable_thinking: bool
    """Ask the chat template for an answer without thinking (its `enable_thinking`). Default: False."""
    n_gpu_layers: int
    """How many layers of the model run on the GPU: 0, the default, none; -1 all."""
    context_size: int
    """Most tokens of prompt and answer together. 0, the default: the bundle's value, else the model's."""
    cache_type_k: str | None
    """Type of the K half of the KV cache, such as "q8_0". None, the default: the runtime's choice."""
    cache_type_v: str | None
    """Type of the V half of the KV cache."""
    mtp_drafter_path: str | os.PathLike[str] | None
    """A smaller model that drafts tokens ahead; relative to the bundle, or absolute."""
    drafter: str | os.PathLike[str] | None
    """Another name of `mtp_drafter_path`."""
    draft_max: int | None
    """Most tokens to draft per step; 0: none. None, the default: 4 where there is a drafter."""
    draft_min: int
    """Fewest tokens to draft per step; with less than that, a step drafts none. Default: 0."""
    prompt_cache_key: str | None
    """Streams of an engine with the same key, one after the other, do not read again what their prompts have in
    common at the start. Default: None."""
    slot_id: int | None
    """Which of the caches of that key: 0 and up; -1: none. None, the default: 0 where there is a key."""


DEFAULTS: Options = {
    "max_tokens": 0,
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "repeat_penalty": 1.0,
    "seed": None,
    "stop": (),
    "grammar": None,
    "json_schema": None,
    "raw": False,
    "disable_thinking": False,
    "n_gpu_layers": 0,
    "context_size": 0,
    "cache_type_k": None,
    "cache_type_v": None,
    "mtp_drafter_path": None,
    "draft_max": None,
    "draft_min": 0,
    "prompt_cache_key": None,
    "slot_id": None,
}

ALIASES = {"drafter": "mtp_drafter_path"}

# What comparable libraries call them: a hint in the message, and not another way to say it.
_ELSEWHERE = {
    "draft_model": "drafter",
    "format": "json_schema",
    "max_kv_size": "context_size",
    "max_new_tokens": "max_tokens",
    "n_ctx": "context_size",
    "n_predict": "max_tokens",
    "num_ctx": "context_size",
    "num_draft_tokens": "draft_max",
    "num_gpu": "n_gpu_layers",
    "num_predict": "max_tokens",
    "response_format": "json_schema",
    "stop_sequences": "stop",
    "stop_strings": "stop",
    "temp": "temperature",
}

# A few tokens pay where drafts are often right; many cost where they are not.
_DRAFT_MAX_WITH_DRAFTER = 4

_INT32_MAX = 2**31 - 1
_FLOAT_MAX = (2 - 2**-23) * 2.0**127  # of the 32 bits that the library takes

# Smallest and largest value. The library checks the same, but says so only once the model is loaded.
_INTEGERS = {
    "max_tokens": (0, _INT32_MAX),
    "top_k": (0, _INT32_MAX),
    "seed": (0, 2**64 - 1),
    "n_gpu_layers": (-1, _INT32_MAX),
    "context_size": (0, _INT32_MAX),
    "draft_max": (0, _INT32_MAX),
    "draft_min": (0, _INT32_MAX),
    "slot_id": (-1, _INT32_MAX),
}
_NUMBERS = {
    "temperature": (0.0, math.inf),
    "top_p": (0.0, 1.0),
    "repeat_penalty": (0.0, math.inf),
}
_FLAGS = {"raw", "disable_thinking"}
_OPTIONAL = {name for name, value in DEFAULTS.items() if value is None}
# Where comparable libraries take None for "no limit" and "none".
_NONE_MEANS_DEFAULT = {"max_tokens", "stop"}


def merge(base: Options, overrides: Mapping[str, Any]) -> Options:
    """`base` with `overrides`, each of them checked.

    Raises:
      InvalidArgument: names the option, its value and what it may be.
    """
    given: dict[str, Any] = {}
    for alias, value in overrides.items():
        name = ALIASES.get(alias, alias)
        if name in given:
            raise InvalidArgument(f"{alias} is another name of {name}; give one of them")
        given[name] = _checked(name, value)
    options: dict[str, Any] = {**base, **given}
    # One of them in a call replaces the other of the engine.
    if given.get("grammar") is not None and given.get("json_schema") is not None:
        raise InvalidArgument("both a grammar and a json_schema are given; the answer can follow one of them")
    if given.get("grammar") is not None:
        options["json_schema"] = None
    if given.get("json_schema") is not None:
        options["grammar"] = None
    draft_max = _draft_max(options)
    if options["draft_min"] > draft_max:
        raise InvalidArgument(
            f"draft_min is {options['draft_min']} and draft_max {draft_max}; draft_min may not be the larger"
        )
    return options  # type: ignore[return-value]


def stream_config(options: Options) -> dict[str, Any]:
    """The arguments of `_native.Context.open`.

    Raises:
      InvalidArgument: a JSON schema is none, or holds what a grammar cannot express.
    """
    drafter = options["mtp_drafter_path"]
    key, slot = options["prompt_cache_key"], options["slot_id"]
    schema = options["json_schema"]
    return {
        "max_tokens": options["max_tokens"],
        "temperature": options["temperature"],
        "top_p": options["top_p"],
        "top_k": options["top_k"],
        "repeat_penalty": options["repeat_penalty"],
        "slot_id": slot if slot is not None else -1 if key is None else 0,
        "prompt_cache_key": key,
        "draft_min": options["draft_min"],
        "draft_max": _draft_max(options),
        "mtp_drafter_path": None if drafter is None else path_bytes(drafter, "mtp_drafter_path"),
        "gbnf_grammar": options["grammar"] if schema is None else _native.json_schema_to_gbnf(str(schema)),
        "disable_thinking": options["disable_thinking"],
        "n_gpu_layers": options["n_gpu_layers"],
        "cache_type_k": options["cache_type_k"],
        "cache_type_v": options["cache_type_v"],
        "context_size": options["context_size"],
    }


def in_our_words(message: str, options: Mapping[str, Any]) -> str:
    """A message of the library's `open`, with its names of options replaced by this package's.

    >>> in_our_words("gbnf_grammar cannot be parsed, line 1", {"json_schema": None, "mtp_drafter_path": None})
    'grammar cannot be parsed, line 1'
    """
    message = message.replace("stream config: ", "")
    message = message.replace("gbnf_grammar", "grammar" if options["json_schema"] is None else "json_schema")
    drafter = options["mtp_drafter_path"]
    if drafter is not None and "drafter" not in message and os.path.basename(str(drafter)) in message:
        return f"drafter: {message}"
    return message


def _draft_max(options: Mapping[str, Any]) -> int:
    draft_max: int | None = options["draft_max"]
    if draft_max is not None:
        return draft_max
    return 0 if options["mtp_drafter_path"] is None else max(_DRAFT_MAX_WITH_DRAFTER, options["draft_min"])


def _checked(name: str, value: Any) -> Any:
    if name not in DEFAULTS:
        known = [*DEFAULTS, *ALIASES]
        close = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise InvalidArgument(f"there is no option {name}; {hint}")
    if value is None and name in _OPTIONAL:
        return None
    if value is None and name in _NONE_MEANS_DEFAULT:
        return DEFAULTS[name]  # type: ignore[literal-required]
    if name in _INTEGERS:
        return _integer(name, value, *_INTEGERS[name])
    if name in _NUMBERS:
        return _number(name, value, *_NUMBERS[name])
    if name in _FLAGS:
        return flag(value, name)
    if name == "stop":
        return _stop_strings(value)
    if name == "json_schema":
        return _json_text(value)
    if name == "mtp_drafter_path":
        return _text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)
    return _text(name, value)


def _integer(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise InvalidArgument(f"{name} is {shown(value)}; it must be a whole number from {low} to {high}")
    return number


def _number(name: str, value: Any, low: float, high: float) -> float:
    try:
        number = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= min(high, _FLOAT_MAX):
        bounds = f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"
        raise InvalidArgument(f"{name} is {shown(value)}; it must be a finite number {bounds}")
    return number


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidArgument(f"{name} is {shown(value)}; it must be a string that is not empty and holds no NUL")
    if name != "mtp_drafter_path":  # a path may hold bytes that are no characters
        utf8(value, name)
    return value


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return _text("json_schema", value)
    # A Pydantic model, or one of its TypeAdapters.
    for method in ("model_json_schema", "json_schema"):
        if callable(schema := getattr(value, method, None)):
            value = schema()
            break
    if not isinstance(value, Mapping):
        raise InvalidArgument(
            f"json_schema is {shown(value)}; it must be a schema as a dict, as JSON text, or as a Pydantic model"
        )
    try:
        # The order of keys is that of the answer.
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"json_schema cannot be written as JSON: {error}") from None


def _stop_strings(value: Any) -> tuple[str, ...]:
    strings = (value,) if isinstance(value, str) else value
    if not isinstance(strings, Sequence) or not all(isinstance(string, str) and string for string in strings):
        raise InvalidArgument(f"stop is {shown(value)}; it must be a string, or a list of strings, none of them empty")
    return tuple(strings)
