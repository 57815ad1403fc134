"""Fixtures of the conformance suite."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conformance import backends
from tests.support import abi
from tests.support.runfile import runfile


@pytest.fixture(scope="session")
def backend() -> backends.Backend:
    """The backend of this run."""
    return backends.current()


@pytest.fixture(autouse=True)
def chosen(backend, monkeypatch) -> None:
    """A hard choice: whatever answers is this backend."""
    monkeypatch.setenv("ELIZA_LLM_BACKEND", backend.name)
    for name, value in backend.environment.items():
        monkeypatch.setenv(name, value)
    if backend.runtime:
        monkeypatch.setenv(backend.runtime, os.fspath(runfile(os.environ["CONFORMANCE_RUNTIME"])))


@pytest.fixture
def context(chosen, backend) -> Iterator[abi.Context]:
    """A context on a model that generates tokens of all kinds."""
    with abi.Context(backend.bundle("noise")) as context:
        yield context
