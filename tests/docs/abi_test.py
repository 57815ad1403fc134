"""docs/abi.md and docs/backends.md against the library: what they list is all there is."""

from __future__ import annotations

import json

import pytest

from tests.docs.markdown import code_spans, fences, rows, sections
from tests.support import abi, models
from tests.support.runfile import runfile

ABI = sections(runfile("docs/abi.md").read_text())
BACKENDS = runfile("docs/backends.md").read_text()


@pytest.fixture(scope="module")
def context():
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        yield context


def test_the_config_by_offset():
    cells = [row[i : i + 3] for row in rows(ABI["The config, by offset"]) for i in (0, 4)]
    table = {field.split(" ")[0].strip("`"): (int(offset), type_) for offset, type_, field in cells if type_}
    sizes = {"i32": 4, "f32": 4, "char*": 8}
    fields = {name: getattr(abi.Config, name) for name, _ in abi.Config._fields_}
    assert {name: (offset, sizes[type_]) for name, (offset, type_) in table.items()} == {
        name: (field.offset, field.size) for name, field in fields.items()
    }


def test_what_is_there():
    table = {name: state for _, probes, state in rows(ABI["What is there"]) for name in code_spans(probes)}
    answers = {name: getattr(abi.load(), name)() for name in abi.SIGNATURES if name.endswith("_supported")}
    assert {name: int(state.startswith("yes")) for name, state in table.items()} == answers


def test_stream_stats(context):
    keys = {key for first, _ in rows(ABI["`llm_stream_stats`"]) for key in code_spans(first)}
    with context.open() as stream:
        assert set(stream.stats()) == keys


def test_backend_report(context, monkeypatch):
    monkeypatch.delenv("ELIZA_LLM_BACKEND", raising=False)
    report = context.report()
    (example,) = fences(BACKENDS, "json")
    shown = json.loads(example)
    assert shown.keys() == report.keys() and shown["env"].keys() == report["env"].keys()
    backends = {backend["name"]: backend for backend in report["backends"]}
    assert shown["chosen"] == report["chosen"]
    for backend in shown["backends"]:
        assert backend == backends[backend["name"]]
