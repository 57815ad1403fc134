"""Tiny models of every architecture of llama.cpp: all work, and what was once a way to end the process is an error."""

from __future__ import annotations

import functools
import re

import pytest

from tests.hostile import architectures, runner
from tests.hostile.gguf_file import TYPES, GgufFile, Tensor
from tests.support import abi

# A hundred or so at a time would take a gigabyte of the disk.
LETTERS = ["a-c", "d-e", "f-g", "h-l", "m-n", "o-p", "q", "r-z"]
LEAST = 115  # models, all together

# Types in which no matrix is computed: of positions, of other backends' weights, or of what is in between.
NOT_FOR_MATRICES = {"I8", "I16", "I32", "I64", "F64"}


@pytest.fixture(scope="module", autouse=True)
def library():
    abi.load()


def outcomes(folder, file, changes) -> dict[str, runner.Outcome]:
    use = functools.partial(architectures.use, folder / "bundle", file, changes)
    return {outcome.name: outcome for outcome in runner.run(list(changes), use)}


def test_every_architecture_generates(tmp_path):
    """As llama.cpp writes it, with every key that it knows."""
    used, refused, wrong = 0, set(), []
    for letters in LETTERS:
        for model in architectures.make(tmp_path / "models", f"^[{letters}]"):
            file = GgufFile.read(model)
            model.unlink()
            (outcome,) = outcomes(tmp_path, file, {"unchanged": architectures.unchanged}).values()
            if outcome.problem:
                wrong.append(f"{model.name}: {outcome.problem}")
            elif outcome.messages:
                refused.add(architectures.architecture(model))
                assert "does not generate text token by token" in outcome.messages[0], outcome.messages
            else:
                used += 1
    assert wrong == []
    assert refused == architectures.NO_DECODERS
    assert used >= LEAST


def test_every_type_of_tensor(tmp_path):
    """A model whose matrices are of one type, whichever it is, is computed or refused: never anything else."""
    (model,) = architectures.make(tmp_path / "models", "^qwen2$")
    file = GgufFile.read(model)

    def with_matrices_of(type: str, file: GgufFile) -> GgufFile:
        def fits(tensor: Tensor) -> bool:
            return len(tensor.extents) > 1 and tensor.extents[0] % TYPES[type][1] == 0

        return GgufFile(file.pairs, [t.changed(type=type) if fits(t) else t for t in file.tensors])

    changes = {type: functools.partial(with_matrices_of, type) for type in TYPES}
    found = outcomes(tmp_path, file, changes)
    assert [f"{type}: {outcome.problem}" for type, outcome in found.items() if outcome.problem] == []
    refused = {type: outcome.messages for type, outcome in found.items() if outcome.messages}
    assert refused.keys() == NOT_FOR_MATRICES, refused


# Each ended the process, or filled its memory, before it was found by architectures.py.
FOUND = {
    "glm-dsa": ["indexer.types 1 -> 0", "blk.0.indexer.proj.weight left out"],
    "dots3note": ["sliding_window_pattern of [01]$"],
    "falcon-h1": ["blk.0.ssm_conv1d.bias left out"],
    "afmoe": ["attention.sliding_window left out"],
    "olmo2": ["attention.head_count left out"],
    "phimoe": ["attention.head_count left out"],
    "deepseek4": ["output_group_count 8 -> 0", "sinkhorn_iterations 2 -> 2147483647"],
    "gemma": ["rope.dimension_count 128 -> 0"],
    "qwen": ["head_count_kv 2 -> 65536"],
    "qwen35": ["rope.dimension_sections .* with 64 as its element 0", "ssm.inner_size 256 -> 4294967295"],
}


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name, threads, tmp_path, monkeypatch):
    monkeypatch.setenv("ELIZA_THREADS", threads)
    (model,) = architectures.make(tmp_path / "models", f"^{name}$")
    file = GgufFile.read(model)
    for pattern in FOUND[name]:
        changes = {what: change for what, change in architectures.changes(file).items() if re.search(pattern, what)}
        assert changes
        for what, outcome in outcomes(tmp_path, file, changes).items():
            assert outcome.problem is None, (what, outcome)
            assert outcome.messages, f"{what}: it was taken"
