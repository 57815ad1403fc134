"""The fake backend, checked for sessions that outlive a test."""

from __future__ import annotations

import pytest

from tests.ffi.fake import Fake
from tests.support import abi


@pytest.fixture(scope="module")
def loaded():
    return Fake()


@pytest.fixture
def fake(loaded):
    loaded.script()
    yield loaded
    loaded.script()
    assert loaded.live_sessions() == 0, "a session outlived its test"


@pytest.fixture
def context(fake, tmp_path):
    with abi.Context(tmp_path, fake.library) as context:
        yield context
