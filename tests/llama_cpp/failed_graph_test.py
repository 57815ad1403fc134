"""An assertion that fails in one of the threads that compute."""

from __future__ import annotations

import os

import pytest

from tests.hostile import architectures
from tests.hostile.gguf_file import GgufFile
from tests.support import abi
from tests.support.isolated import isolated


@isolated
def test_a_computation_that_failed_is_not_the_last(tmp_path):
    """The threads of a graph in which an assertion failed compute the next one."""
    os.environ["ELIZA_THREADS"] = "3"
    (model,) = architectures.make(tmp_path / "models", "^qwen35$")
    file = GgufFile.read(model)
    bad = next(
        change for what, change in architectures.changes(file).items() if "sections" in what and "with 64 as" in what
    )
    for name, change in {"bad": bad, "good": architectures.unchanged}.items():
        (tmp_path / name / "text").mkdir(parents=True)
        change(file).write(tmp_path / name / "text" / "model.gguf")

    with abi.Context(tmp_path / "bad") as context, context.open(max_tokens=4, context_size=128) as stream:
        for _ in range(3):
            with pytest.raises(abi.Error, match="cannot run the model .*GGML_ASSERT.* failed") as caught:
                stream.prefill([3, 4, 5])
                stream.generate()
            assert caught.value.status == abi.FFI_FAULT
            stream.reset()
        with abi.Context(tmp_path / "good") as other, other.open(max_tokens=4, context_size=128) as works:
            works.prefill([3, 4, 5])
            assert sum(len(step.tokens) for step in works.steps()) == 4
