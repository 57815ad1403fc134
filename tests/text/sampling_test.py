"""What a stream config may hold, and what it means."""

from __future__ import annotations

import math
import struct

import _text_testing
import pytest

INVALID_ARG = -2
INT32_MIN = -(2**31)
NAN, INF = math.nan, math.inf


def config(**fields: float) -> _text_testing.Config:
    made = _text_testing.Config()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def test_the_default_is_valid_and_greedy() -> None:
    default = config()
    _text_testing.validate(default)
    settings = _text_testing.sampling_settings(default)
    assert settings.greedy
    assert (settings.temperature, settings.top_p, settings.top_k, settings.repeat_penalty) == (0, 1, 0, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 2**31 - 1},
        {"temperature": 1e30},
        {"temperature": -0.0},
        {"top_p": -1.0},
        {"top_p": 7.0},
        {"top_p": NAN},
        {"top_p": INF},
        {"top_p": -INF},
        {"repeat_penalty": -3.0},
        {"repeat_penalty": NAN},
        {"repeat_penalty": -INF},
        {"top_k": 2**31 - 1},
        {"slot_id": 0},
        {"draft_min": 4, "draft_max": 4},
        {"n_gpu_layers": -1},
        {"n_gpu_layers": 10_000},
        {"context_size": 4096},
        {"disable_thinking": -7},
    ],
)
def test_valid(fields: dict[str, float]) -> None:
    _text_testing.validate(config(**fields))


@pytest.mark.parametrize(
    ("fields", "value", "wanted"),
    [
        ({"max_tokens": -1}, "-1", ">= 0"),
        ({"max_tokens": INT32_MIN}, str(INT32_MIN), ">= 0"),
        ({"temperature": -0.5}, "-0.5", ">= 0"),
        ({"temperature": NAN}, "nan", "finite"),
        ({"temperature": INF}, "inf", "finite"),
        ({"temperature": -INF}, "-inf", "finite"),
        ({"top_k": -1}, "-1", ">= 0"),
        ({"repeat_penalty": INF}, "inf", "finite"),
        ({"slot_id": -2}, "-2", ">= -1"),
        ({"draft_min": -1}, "-1", ">= 0"),
        ({"draft_max": -1}, "-1", ">= 0"),
        ({"draft_min": 5, "draft_max": 4}, "5 and draft_max 4", "<= draft_max"),
        ({"draft_min": 1}, "1 and draft_max 0", "<= draft_max"),
        ({"n_gpu_layers": -2}, "-2", ">= -1"),
        ({"context_size": -1}, "-1", ">= 0"),
    ],
)
def test_invalid(fields: dict[str, float], value: str, wanted: str) -> None:
    with pytest.raises(_text_testing.Error) as raised:
        _text_testing.validate(config(**fields))
    status, message = raised.value.args
    assert status == INVALID_ARG
    assert f"{next(iter(fields))} is {value}" in message
    assert wanted in message


def test_numbers_are_those_of_no_locale() -> None:
    _text_testing.set_decimal_comma(True)
    try:
        for temperature, text in [(-0.5, "-0.5"), (-123456.0, "-123456"), (-1e30, "-1e+30")]:
            with pytest.raises(_text_testing.Error) as raised:
                _text_testing.validate(config(temperature=temperature))
            assert f"temperature is {text};" in raised.value.args[1]
    finally:
        _text_testing.set_decimal_comma(False)


def test_null() -> None:
    with pytest.raises(_text_testing.Error, match="null") as raised:
        _text_testing.validate(None)
    assert raised.value.args[0] == INVALID_ARG


@pytest.mark.parametrize(
    ("field", "value", "meaning"),
    [
        ("temperature", 0.7, 0.7),
        ("temperature", 1e-4, 1e-4),
        ("temperature", 1e-6, 0),
        ("temperature", 1e-45, 0),
        ("top_k", 40, 40),
        ("top_p", 0.9, 0.9),
        ("top_p", 0.0, 1),
        ("top_p", -1.0, 1),
        ("top_p", 1.5, 1),
        ("top_p", NAN, 1),
        ("top_p", INF, 1),
        ("top_p", -INF, 1),
        ("repeat_penalty", 1.1, 1.1),
        ("repeat_penalty", 0.5, 0.5),
        ("repeat_penalty", 0.0, 1),
        ("repeat_penalty", -1.0, 1),
        ("repeat_penalty", NAN, 1),
        ("repeat_penalty", 1e-45, 1e-4),
        ("repeat_penalty", 3e38, 1e4),
    ],
)
def test_meaning(field: str, value: float, meaning: float) -> None:
    settings = _text_testing.sampling_settings(config(**{field: value}))
    assert getattr(settings, field) == float32(meaning)
    assert settings.greedy == (field != "temperature" or meaning == 0)
