"""Which backend answers, for real: one bundle with a .gguf and a .litertlm, one with a .litertlm only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support import abi, models
from tests.support.isolated import isolated


@pytest.fixture
def both(tmp_path, bundle) -> Path:
    """A bundle with a GGUF and a LiteRT-LM model."""
    (tmp_path / "text").mkdir()
    for model in (models.text_model("tiny_llama_cycle"), bundle / "text" / "tiny_gemma3.litertlm"):
        (tmp_path / "text" / model.name).symlink_to(model)
    return tmp_path


def _report(context: abi.Context) -> tuple[dict, dict]:
    report = context.report()
    return report, next(row for row in report["backends"] if row["name"] == "litert-lm")


def _chosen(bundle: Path) -> str:
    """The backend of a stream that generates; the report foretells it."""
    with abi.Context(bundle) as context, context.open(max_tokens=3) as stream:
        report, _ = _report(context)
        backend = stream.stats()["backend"]
        assert report["chosen"] == backend
        # A bundle's vocabulary is that of its GGUF, and these two models do not have the same.
        stream.prefill([300] if backend == "litert-lm" else context.tokenize("a"))
        assert stream.generate()
        return backend


def _error(bundle: Path) -> str:
    """The message with which an open fails; the report has the same."""
    with abi.Context(bundle) as context:
        with pytest.raises(abi.Error) as caught:
            context.open()
        report, _ = _report(context)
        assert report["chosen"] is None
        assert report["error"] == caught.value.message
        return caught.value.message


# -- The matrix -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accelerator", "backend", "expected"),
    [
        (None, None, "llama.cpp"),
        ("cpu", None, "llama.cpp"),  # rank -1
        ("cpu", "litert-lm", "litert-lm"),
        ("cpu", "llama.cpp", "llama.cpp"),
        (None, "llama", "llama.cpp"),
    ],
)
@isolated
def test_a_bundle_with_both(both, monkeypatch, accelerator, backend, expected):
    for name, value in {"ELIZA_LITERT_ACCELERATOR": accelerator, "ELIZA_LLM_BACKEND": backend}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert _chosen(both) == expected


@isolated
def test_a_bundle_with_a_litertlm_only(bundle):
    assert _chosen(bundle) == "litert-lm"


@isolated
def test_a_hard_select_without_an_accelerator_says_how_to_allow_one(both, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.delenv("ELIZA_LITERT_ACCELERATOR")
    message = _error(both)
    assert "litert-lm is not available: " in message
    assert "ELIZA_LITERT_ACCELERATOR=cpu lets it run on the CPU" in message


@pytest.mark.parametrize("value", ["", "auto"])
@isolated
def test_only_a_litertlm_and_nothing_to_run_it_on(bundle, monkeypatch, value):
    monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", value)
    with abi.Context(bundle) as context, pytest.raises(abi.Error, match="no backend serves the bundle") as caught:
        context.open()
    assert "ELIZA_LITERT_ACCELERATOR=cpu lets it run on the CPU" in caught.value.message


@pytest.mark.parametrize("value", ["npu", "gpu"])
@isolated
def test_an_accelerator_that_is_not_there_is_not_the_cpu(bundle, monkeypatch, value):
    """The library itself takes "npu" here, and runs on the CPU without a word."""
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", value)
    message = _error(bundle)
    assert f"litert-lm is not available: no {value.upper()}: " in message
    with abi.Context(bundle) as context:
        _, row = _report(context)
        assert (row["available"], row["can_serve"], row["rank"]) == (False, True, None)


@isolated
def test_a_misspelt_accelerator(bundle, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", "tpu")
    assert "ELIZA_LITERT_ACCELERATOR is 'tpu'; set it to auto, npu, gpu or cpu" in _error(bundle)


# -- The library ----------------------------------------------------------------------------------


@isolated
def test_a_hidden_library_is_an_error_that_names_every_place(both, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.delenv("ELIZA_LITERT_LM_LIBRARY")
    message = _error(both)
    name = "liblitert-lm.so" if os.uname().sysname == "Linux" else "liblitert-lm.dylib"
    for place in (f"{abi.library_path().parent}/{name}", f"{both}/lib/{name}", f"; {name}: "):
        assert place in message
    assert "ELIZA_LITERT_LM_LIBRARY names the file" in message


@isolated
def test_a_library_that_the_variable_names_is_the_only_one(both, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", "/nowhere/liblitert-lm.so")
    message = _error(both)
    assert "/nowhere/liblitert-lm.so: " in message
    assert f"{abi.library_path().parent}/" not in message
    assert str(both / "lib") not in message


@isolated
def test_a_bundle_may_bring_the_library(both, monkeypatch):
    library = Path(os.environ["ELIZA_LITERT_LM_LIBRARY"])
    (both / "lib").mkdir()
    (both / "lib" / library.name).symlink_to(library.resolve())
    monkeypatch.delenv("ELIZA_LITERT_LM_LIBRARY")
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    assert _chosen(both) == "litert-lm"


@isolated
def test_the_report_says_what_it_is(both):
    with abi.Context(both) as context:
        report, row = _report(context)
    assert report["chosen"] == "llama.cpp"
    assert (row["compiled"], row["available"], row["can_serve"], row["rank"]) == (True, True, True, -1)
    assert row["reason"] == "its rank -1 does not exceed that of llama.cpp (0)"


@isolated
def test_a_manifest_names_the_model(both, bundle):
    (both / "text" / "other.litertlm").write_bytes(b"")
    entry = {"path": "text/tiny_gemma3.litertlm", "sha256": "0" * 64, "ctx": 128, "runtimeClass": "litert-lm"}
    (both / "eliza-1.manifest.json").write_text(json.dumps({"files": {"text": [entry]}}))
    with abi.Context(both) as context, context.open() as stream:
        stats = stream.stats()
    assert (stats["backend"], stats["kv_capacity"]) == ("litert-lm", 128)
