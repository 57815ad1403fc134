"""Bundle directories for tests, and the bundle as the library sees it."""

from __future__ import annotations

import os
from pathlib import Path

import _bundle_testing
import pytest
from _bundle_testing import Bundle, RuntimeClass

BUNDLE_INVALID = -3
LLAMA_CPP, LITERT_LM, MLX = RuntimeClass.LLAMA_CPP, RuntimeClass.LITERT_LM, RuntimeClass.MLX


def make(root: Path, *paths: str | bytes) -> Path:
    """Creates small files, and directories for the paths that end in "/"."""
    for path in map(os.fsencode, paths):
        target = os.path.join(os.fsencode(root), path)
        os.makedirs(target if path.endswith(b"/") else os.path.dirname(target), exist_ok=True)
        if not path.endswith(b"/"):
            with open(target, "wb") as file:
                file.write(b"model")
    return root


def open_bundle(root: Path) -> Bundle:
    return Bundle.open(os.fsencode(root))


def artifact(root: Path, runtime_class: RuntimeClass) -> str | None:
    """The text artifact's path, relative to the bundle."""
    found = open_bundle(root).text_artifact(runtime_class)
    return None if found is None else os.path.relpath(os.fsdecode(found.path), root)


def error_of(call, *args) -> str:
    """The message of the ELIZA_ERR_BUNDLE_INVALID that the call fails with."""
    with pytest.raises(_bundle_testing.Error) as raised:
        call(*args)
    status, message = raised.value.args
    assert status == BUNDLE_INVALID
    assert len(message) < 4096
    assert "\n" not in message
    return message
