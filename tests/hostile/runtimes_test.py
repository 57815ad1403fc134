"""Malformed files of LiteRT-LM and MLX through the C ABI: each an error message, as in hostile_test.py.

No runtime reads them: LiteRT-LM's is not even here, and MLX is handed a model when all of its files are right.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.hostile import litertlm_cases, mlx_cases
from tests.hostile.messages import problems, refusal
from tests.support import abi, models

MLX_CLASSES = {
    "model.safetensors": mlx_cases.SAFETENSORS_CLASSES,
    "config.json": mlx_cases.CONFIG_CLASSES,
    "tokenizer.json": mlx_cases.TOKENIZER_CLASSES,
}


@pytest.fixture
def mlx_bundle(tmp_path) -> Path:
    """A bundle of links to the files of a good model."""
    (tmp_path / "text").mkdir()
    for file in (models.bundle(f"tiny_mlx_{mlx_cases.MODEL}") / "text").iterdir():
        (tmp_path / "text" / file.name).symlink_to(file.resolve())
    return tmp_path


def _refuse(file: Path, cases: dict[str, bytes], reads: tuple[str, ...], name: str) -> list[str]:
    """The messages of the calls that read the file: each names it. The report has words as well."""
    file.unlink(missing_ok=True)
    file.write_bytes(cases[name])
    with abi.Context(file.parent.parent) as context:
        calls = {"open": lambda: context.open(context_size=64), "tokenize": lambda: context.tokenize("abc")}
        messages = [refusal(calls[call]) for call in reads]
        for message in messages:
            assert file.name in message, message
        report = context.report()
        assert all(row["reason"] for row in report["backends"])
        return messages


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, classes in MLX_CLASSES.items() for kind in classes], ids="-".join
)
def test_mlx(monkeypatch, mlx_bundle, name, kind):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "mlx-coreml")
    abi.load()
    cases = MLX_CLASSES[name][kind]()
    reads = ("open", "tokenize") if name == "tokenizer.json" else ("open",)
    check = functools.partial(_refuse, mlx_bundle / "text" / name, cases, reads)
    assert problems(cases, check) == ([], len(cases))


@pytest.mark.parametrize("kind", litertlm_cases.CLASSES)
def test_litertlm(monkeypatch, tmp_path, kind):
    """A header that a change has left readable is refused for want of the runtime, which the message then names."""
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", str(tmp_path / "model.litertlm.runtime"))
    abi.load()
    (tmp_path / "text").mkdir()
    cases = litertlm_cases.CLASSES[kind]()
    check = functools.partial(_refuse, tmp_path / "text" / "model.litertlm", cases, ("open", "tokenize"))
    assert problems(cases, check) == ([], len(cases))


@pytest.mark.parametrize("kind", ["nothing", "truncated", "sections"])
def test_litertlm_by_its_header(monkeypatch, tmp_path, kind):
    """These are no models, whatever runtime there is: the header's check says so."""
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    (tmp_path / "text").mkdir()
    file = tmp_path / "text" / "model.litertlm"
    for name, data in litertlm_cases.CLASSES[kind]().items():
        file.write_bytes(data)
        with abi.Context(tmp_path) as context:
            message = refusal(context.open)
            assert any(advice in message for advice in ("Download the model again", "Take a model", "Take one")), name


def test_there_are_enough():
    classes = [*MLX_CLASSES.values(), litertlm_cases.CLASSES]
    made = [make() for kind in classes for make in kind.values()]
    assert all(len(cases) > 5 for cases in made)
    assert sum(map(len, made)) > 1000
    # Deterministic: what fails here fails anywhere.
    assert made == [make() for kind in classes for make in kind.values()]
