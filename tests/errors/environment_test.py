"""Environment variables that say nonsense, or mean harm."""

from __future__ import annotations

import os

import pytest

from tests.errors.expect import error
from tests.support import abi, models
from tests.support.isolated import isolated

CYCLE = "tiny_llama_cycle"


def _set(name: str, value: str | bytes) -> None:
    os.environb[name.encode()] = value.encode() if isinstance(value, str) else value


def _generate() -> str:
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=3) as stream:
        stream.prefill(context.tokenize("abc"))
        return stream.generate()


@pytest.mark.parametrize("value", ["", " ", "\t\n ", "llama.cpp", "LLAMA.CPP", " LlamaCpp\n", "llama"])
@isolated
def test_backend_that_is_llama_cpp(value):
    _set("ELIZA_LLM_BACKEND", value)
    assert _generate() == "def"


@pytest.mark.parametrize(
    "value", ["llama-cp", "cuda", "llama.cpp,mlx-coreml", "x" * 100_000, "%s%n", "\x1b[2J", "\U0001f600"]
)
@isolated
def test_backend_that_does_not_exist(value):
    _set("ELIZA_LLM_BACKEND", value)
    shown = value if value.isprintable() and len(value) < 80 else ""
    with abi.Context(models.bundle(CYCLE)) as context:
        with error(abi.INVALID_ARG, "ELIZA_LLM_BACKEND", shown, "llama.cpp", "litert-lm", "mlx-coreml"):
            context.open()
        try:
            context.open()
        except abi.Error as refusal:
            assert "\x1b" not in refusal.message
            assert len(refusal.message) < 2000, "a message is for reading"


@isolated
def test_backend_in_no_encoding():
    _set("ELIZA_LLM_BACKEND", b"\xff\xfellama\xc3")
    with abi.Context(models.bundle(CYCLE)) as context, error(abi.INVALID_ARG, "ELIZA_LLM_BACKEND", "llama.cpp"):
        context.open()


@pytest.mark.parametrize("value", ["litert-lm", "LiteRT-LM", " mlx-coreml "])
@isolated
def test_backend_that_is_not_in_this_build(value):
    _set("ELIZA_LLM_BACKEND", value)
    with abi.Context(models.bundle(CYCLE)) as context:
        with error(abi.INVALID_ARG, "ELIZA_LLM_BACKEND", value.strip(), "not compiled"):
            context.open()
        # What needs no backend still works.
        assert context.tokenize("abc")


NO_NUMBERS = ["0", "-1", "two", "1.5", "1e3", "0x10", "999999999999999999999999", "1;2", "\xff"]


@pytest.mark.parametrize("variable", ["ELIZA_THREADS", "ELIZA_CONTEXT_SIZE"])
@pytest.mark.parametrize("value", NO_NUMBERS)
@isolated
def test_no_number(variable, value):
    _set(variable, value)
    with abi.Context(models.bundle(CYCLE)) as context, error(abi.INVALID_ARG, variable, value):
        context.open()


@pytest.mark.parametrize("value", [str(max(16, 4 * os.cpu_count()) + 1), "1000000"])
@isolated
def test_threads_beyond_reason(value):
    _set("ELIZA_THREADS", value)
    with abi.Context(models.bundle(CYCLE)) as context, error(abi.INVALID_ARG, "ELIZA_THREADS", value):
        context.open()


@isolated
def test_a_context_beyond_memory():
    _set("ELIZA_CONTEXT_SIZE", "2000000000")
    with abi.Context(models.bundle(CYCLE)) as context, error(abi.OOM, "ELIZA_CONTEXT_SIZE", "2000000000"):
        context.open()


@pytest.mark.parametrize("variable", ["ELIZA_THREADS", "ELIZA_CONTEXT_SIZE", "ELIZA_LOG"])
@isolated
def test_empty_means_unset(variable):
    _set(variable, "")
    assert _generate() == "def"


@isolated
def test_a_log_nobody_can_write(tmp_path):
    for value in (tmp_path, tmp_path / "no" / "such" / "folder.log", b"\xff\n", "x" * 100_000):
        _set("ELIZA_LOG", value if isinstance(value, bytes) else str(value))
    assert _generate() == "def"


@isolated
def test_a_log_file(tmp_path):
    _set("ELIZA_LOG", str(tmp_path / "eliza.log"))
    assert _generate() == "def"
    assert (tmp_path / "eliza.log").read_text()
