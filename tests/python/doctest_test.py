"""The examples in docstrings and in docs/python.md, run on the demo model."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re

import elizainference as eliza
import pytest

from tests.support.runfile import runfile


def _modules() -> list[str]:
    names = [name for _, name, _ in pkgutil.walk_packages(eliza.__path__, "elizainference.")]
    return [name for name in names if not name.endswith(("._native", "libelizainference", "__main__"))]


@pytest.fixture(scope="module")
def names():
    """What examples may use without saying where it comes from."""
    bundle = str(runfile(os.environ["DEMO_MANIFEST"]).parent)
    with eliza.Engine(bundle) as engine:
        yield {"bundle": bundle, "engine": engine}


@pytest.mark.parametrize("module", _modules())
def test_examples(module, names):
    result = doctest.testmod(
        importlib.import_module(module), extraglobs=names, optionflags=doctest.ELLIPSIS, raise_on_error=False
    )
    assert result.failed == 0


def test_guide(names):
    text = runfile("docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), dict(names), "python.md", None, 0)
    assert len(test.examples) > 10
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.failed == 0


def test_there_are_examples():
    tests = doctest.DocTestFinder().find(importlib.import_module("elizainference._engine"))
    with_examples = {test.name.removeprefix("elizainference._engine.") for test in tests if test.examples}
    assert {
        "Engine",
        "Engine.stream",
        "Engine.generate",
        "Engine.chat",
        "Engine.embed",
        "Engine.tokenize",
    } <= with_examples
