"""The models against mlx-lm's: golden logits, past the sliding window; and models that are wrong on purpose."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import _mlx_testing
import pytest

from tests.models import safetensors_writer
from tests.support.runfile import runfile

NAMES = ["gemma3_f32", "gemma3_q4", "gemma3_vision", "gemma4_f32", "gemma4_wide", "llama_f32", "llama_q8"]
TOLERANCE = 1e-4  # of the largest logit


def directory(name: str) -> Path:
    """The model directory of //tests/models:tiny_mlx_NAME."""
    return runfile(f"tests/models/tiny_mlx_{name}_bundle/text")


def compare(model_directory: Path, name: str) -> tuple[float, int]:
    """The largest distance to the golden logits, over their largest value, and how often another token is first."""
    golden = safetensors_writer.load(runfile(f"tests/mlx/golden/{name}.safetensors"))
    ids = list(golden["ids"].values())
    model = _mlx_testing.Model(str(model_directory))
    steps = [model.logits(ids[:5])[-1]] + [model.logits([token])[0] for token in ids[5:]]
    model.clear()
    actual = steps + model.logits(ids[:20])
    expected = golden["steps"].rows() + golden["prefill"].rows()
    assert len(actual) == len(expected) == 40
    largest = max(abs(value) for row in expected for value in row)
    distance = max(
        abs(a - b)
        for row, golden_row in zip(actual, expected, strict=True)
        for a, b in zip(row, golden_row, strict=True)
    )
    mismatches = sum(
        row.index(max(row)) != golden_row.index(max(golden_row))
        for row, golden_row in zip(actual, expected, strict=True)
    )
    return distance / largest, mismatches


def test_every_model_is_compared():
    assert {path.stem for path in runfile("tests/mlx/golden").iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_golden_logits(name):
    distance, mismatches = compare(directory(name), name)
    assert distance < TOLERANCE
    assert mismatches == 0


# {what is wrong: (the model, the config values that make it so, or what to do with its tensors)}
WRONG = {
    "no window": ("gemma3_f32", {"sliding_window": 4096}),
    "every layer full": ("gemma3_f32", {"sliding_window_pattern": 1}),
    "wrong local rope base": ("gemma3_f32", {"rope_local_base_freq": 1e6}),
    "wrong attention scale": ("gemma3_f32", {"query_pre_attn_scalar": 256}),
    "no rope scaling": ("gemma3_vision", {"rope_scaling": None}),
    "no soft cap": ("gemma4_f32", {"final_logit_softcapping": None}),
    "no window in Gemma 4": ("gemma4_f32", {"sliding_window": 4096}),
    "whole heads rotated": (
        "gemma4_f32",
        {"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}},
    ),
    "no llama3 scaling": ("llama_f32", {"rope_scaling": None}),
    "wrong rope base": ("llama_q8", {"rope_theta": 500000.0}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_on_purpose(wrong, tmp_path):
    name, values = WRONG[wrong]
    copy = Path(shutil.copytree(directory(name), tmp_path / "model"))
    config = json.loads((copy / "config.json").read_text())
    config.get("text_config", config).update(values)
    (copy / "config.json").unlink()
    (copy / "config.json").write_text(json.dumps(config))
    assert compare(copy, name)[0] > 10 * TOLERANCE


def test_plain_norms_where_they_are_kept_less_one(tmp_path):
    copy = Path(shutil.copytree(directory("gemma3_f32"), tmp_path / "model"))
    tensors = safetensors_writer.load(copy / "model.safetensors")
    for tensor, value in tensors.items():
        if "norm" in tensor:
            values = value.values()
            for i, weight in enumerate(values):
                values[i] = weight - 1
            tensors[tensor] = safetensors_writer.Tensor.of("F32", value.shape, values)
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").write_bytes(safetensors_writer.dumps(tensors))
    assert compare(copy, "gemma3_f32")[0] > 10 * TOLERANCE
