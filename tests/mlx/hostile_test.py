"""Bad files: each is an error that names the file and what is wrong with it, in a process that lives on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import _mlx_testing
import pytest

from tests.hostile import mlx_cases
from tests.mlx.golden_test import directory
from tests.models import safetensors_writer
from tests.models.safetensors_writer import Tensor
from tests.support.isolated import isolated


def linked(name: str, to: Path) -> Path:
    """A copy of a model directory, made of links."""
    to.mkdir()
    for file in directory(name).iterdir():
        (to / file.name).symlink_to(file.resolve())
    return to


def replace(path: Path, data: bytes) -> None:
    """Puts a file in a link's place."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def message_of(path: Path) -> str:
    """What loading the model says."""
    with pytest.raises(RuntimeError) as error:
        _mlx_testing.Model(str(path))
    return str(error.value)


# -- config.json ----------------------------------------------------------------------------------

ABSENT = object()

# {what: (the model, key, value, what the message says besides the file and the key)}
CONFIGS = {
    "no model_type": ("llama_f32", "model_type", ABSENT, "is missing; it must be one of gemma3_text, gemma3"),
    "unknown model_type": ("llama_f32", "model_type", "qwen3", 'is "qwen3"; it must be one of gemma3_text, gemma3'),
    "model_type is a number": ("llama_f32", "model_type", 3, "must be a string"),
    "no hidden_size": ("llama_f32", "hidden_size", ABSENT, "is missing; it must be a whole number from 1"),
    "hidden_size of a string": ("llama_f32", "hidden_size", "128", "must be a whole number"),
    "hidden_size of a fraction": ("llama_f32", "hidden_size", 128.5, "must be a whole number"),
    "hidden_size 0": ("llama_f32", "hidden_size", 0, "is 0; it must be a whole number from 1"),
    "hidden_size negative": ("llama_f32", "hidden_size", -128, "is -128"),
    "hidden_size huge": ("llama_f32", "hidden_size", 2**62, "must be a whole number"),
    "no layers": ("llama_f32", "num_hidden_layers", ABSENT, "is missing"),
    "too many layers": ("llama_f32", "num_hidden_layers", 10**9, "to 4096"),
    "heads that keys do not divide": ("llama_f32", "num_key_value_heads", 3, "a divisor of num_attention_heads"),
    "an odd head": ("llama_f32", "head_dim", 31, "an even number"),
    "an object for a number": ("llama_f32", "rms_norm_eps", {"__float__": "inf"}, "must be a number"),
    "no epsilon": ("llama_f32", "rms_norm_eps", ABSENT, "is missing"),
    "unknown activation": ("llama_f32", "hidden_act", "relu", "must be silu"),
    "unknown rope": ("llama_f32", "rope_scaling", {"type": "yarn", "factor": 2}, "one of default, linear, llama3"),
    "rope without a factor": ("llama_f32", "rope_scaling", {"type": "linear"}, "rope_scaling/factor is missing"),
    "rope factor 0": ("llama_f32", "rope_scaling", {"type": "llama3", "factor": 0}, "rope_scaling/factor is 0"),
    "rope of a list": ("llama_f32", "rope_scaling", [1], "must be an object"),
    "layer types of a llama": ("llama_f32", "layer_types", ["sliding_attention"] * 4, "must be full_attention"),
    "window 0": ("gemma3_f32", "sliding_window", 0, "is 0"),
    "pattern 0": ("gemma3_f32", "sliding_window_pattern", 0, "is 0"),
    "too few layer types": ("gemma3_f32", "layer_types", ["full_attention"], "an array of 4 strings"),
    "unknown layer type": ("gemma3_f32", "layer_types", ["x"] * 4, "sliding_attention or full_attention"),
    "all layers shared": ("gemma4_f32", "num_kv_shared_layers", 6, "less than num_hidden_layers"),
    "nothing to share": ("gemma4_f32", "num_kv_shared_layers", 5, "so few that each kind of layer"),
    "experts": ("gemma4_f32", "enable_moe_block", True, "must be false"),
    "small per-layer vocabulary": ("gemma4_f32", "vocab_size_per_layer_input", 100, "at least vocab_size"),
    "soft cap 0": ("gemma4_f32", "final_logit_softcapping", 0, "is 0"),
    "another quantisation": ("llama_q8", "quantization", {"mode": "mxfp4"}, 'mode is "mxfp4"; it must be affine'),
    "another method": ("llama_q8", "quantization_config", {"quant_method": "awq"}, 'quant_method is "awq"'),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_configs(what, tmp_path):
    name, key, value, message = CONFIGS[what]

    @isolated
    def check():
        model = linked(name, tmp_path / "model")
        config = json.loads((model / "config.json").read_text())
        if value is ABSENT:
            del config[key]
        else:
            config[key] = value
        replace(model / "config.json", json.dumps(config).encode())
        said = message_of(model)
        assert said.startswith("-3: "), said
        assert f"{model}/config.json: /{key}" in said
        assert message in said

    check()


@pytest.mark.parametrize("what", mlx_cases.CONFIG_FILES)
def test_config_files(what, tmp_path):
    data, message = mlx_cases.CONFIG_FILES[what]

    @isolated
    def check():
        model = linked("llama_f32", tmp_path / "model")
        replace(model / "config.json", data)
        said = message_of(model)
        assert said.startswith(f"-3: {model}/config.json: ")
        assert message in said

    check()


# -- Tensors that do not fit the config -----------------------------------------------------------

# {the key that is named: (the model, key, value): whose tensors then have other shapes}
MISFITS = {
    "hidden_size": ("llama_f32", "hidden_size", 64),
    "vocab_size": ("llama_f32", "vocab_size", 100_000),
    "num_attention_heads": ("llama_f32", "num_attention_heads", 8),
    "num_key_value_heads": ("llama_f32", "num_key_value_heads", 4),
    "intermediate_size": ("llama_f32", "intermediate_size", 512),
    "head_dim": ("gemma3_f32", "head_dim", 32),
    "hidden_size, ": ("gemma3_q4", "hidden_size", 192),
    "global_head_dim": ("gemma4_f32", "global_head_dim", 64),
    "intermediate_size, hidden_size": ("gemma4_f32", "use_double_wide_mlp", False),
    "hidden_size_per_layer_input": ("gemma4_f32", "hidden_size_per_layer_input", 64),
}


@pytest.mark.parametrize("named", MISFITS)
def test_shapes_that_the_config_does_not_make(named, tmp_path):
    name, key, value = MISFITS[named]

    @isolated
    def check():
        model = linked(name, tmp_path / "model")
        config = json.loads((model / "config.json").read_text())
        config[key] = value
        replace(model / "config.json", json.dumps(config).encode())
        said = message_of(model)
        assert said.startswith(f"-3: {model}/model.safetensors: the tensor '")
        assert "has the shape [" in said
        assert named.strip(", ") in said

    check()


def _shape(tensor: Tensor) -> Tensor:
    return Tensor(tensor.dtype, (*reversed(tensor.shape), 1), tensor.data)


QUERY = "model.layers.2.self_attn.q_proj"

# {what: (the model, a tensor, what becomes of it, what the message says)}; None: it goes.
TENSORS = {
    "missing": ("llama_f32", f"{QUERY}.weight", lambda _: None, "is missing; the model that"),
    "missing norm": ("llama_f32", "model.norm.weight", lambda _: None, "is missing"),
    "missing embedding": ("llama_f32", "model.embed_tokens.weight", lambda _: None, "it is no language model"),
    "missing bias": ("llama_q8", f"{QUERY}.bias", lambda _: None, "is missing"),
    "missing scales": ("gemma3_q4", f"{QUERY}.scales", lambda _: None, "has the shape"),
    "missing biases": ("gemma3_q4", f"{QUERY}.biases", lambda _: None, "is missing"),
    "another rank": ("llama_f32", f"{QUERY}.weight", _shape, "has the shape [128, 128, 1]"),
    "integers": ("llama_f32", f"{QUERY}.weight", lambda t: Tensor("I32", t.shape, t.data), "is of type I32"),
    "packed floats": ("gemma3_q4", f"{QUERY}.weight", lambda t: Tensor("F32", t.shape, t.data), "is of type F32"),
    "scales of bytes": (
        "gemma3_q4",
        f"{QUERY}.scales",
        lambda t: Tensor("U8", t.shape, t.data[: len(t.data) // 4]),
        "mxfp4",
    ),
    "no groups": ("gemma3_q4", f"{QUERY}.scales", lambda t: Tensor("F32", (256, 0), b""), "is no packed matrix"),
    "odd groups": (
        "gemma3_q4",
        f"{QUERY}.scales",
        lambda t: Tensor("F32", (256, 1), t.data[: len(t.data) // 2]),
        None,  # one group of 128 values: the biases no longer fit
    ),
    "another number of words": (
        "gemma3_q4",
        f"{QUERY}.weight",
        lambda t: Tensor("U32", (256, 15), t.data[: 256 * 15 * 4]),
        "is no packed matrix",
    ),
    "empty": ("llama_f32", f"{QUERY}.weight", lambda _: Tensor("F32", (0, 128), b""), "has the shape [0, 128]"),
}


@pytest.mark.parametrize("what", TENSORS)
def test_tensors(what, tmp_path):
    name, tensor, change, message = TENSORS[what]

    @isolated
    def check():
        model = linked(name, tmp_path / "model")
        tensors = safetensors_writer.load(model / "model.safetensors")
        changed = change(tensors.pop(tensor))
        if changed is not None:
            tensors[tensor] = changed
        replace(model / "model.safetensors", safetensors_writer.dumps(tensors))
        said = message_of(model)
        assert said.startswith(f"-3: {model}/model.safetensors: the tensor '")
        assert tensor.rpartition(".")[0] in said
        assert (message or "has the shape") in said

    check()


# -- Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", mlx_cases.SAFETENSORS_FILES)
def test_files(what, tmp_path):
    data, message = mlx_cases.SAFETENSORS_FILES[what]

    @isolated
    def check():
        model = linked("llama_f32", tmp_path / "model")
        replace(model / "model.safetensors", data)
        said = message_of(model)
        assert said.startswith(f"-3: {model}/model.safetensors: ")
        assert message in said

    check()


def test_cut_anywhere(tmp_path):
    @isolated
    def check():
        model = linked("gemma3_q4", tmp_path / "model")
        data = (model / "model.safetensors").read_bytes()
        for size in [*range(0, 40), *range(40, len(data), 9973), len(data) - 1]:
            replace(model / "model.safetensors", data[:size])
            assert message_of(model).startswith(f"-3: {model}/model.safetensors: ")

    check()


def test_a_pipe_is_no_file(tmp_path):
    @isolated
    def check():
        model = linked("llama_f32", tmp_path / "model")
        for name in ("model.safetensors", "config.json"):
            path = model / name
            target = path.resolve()
            path.unlink()
            os.mkfifo(path)
            assert str(path) in message_of(model)
            path.unlink()
            path.symlink_to(target)

    check()


# -- Shards ---------------------------------------------------------------------------------------

INDEX = "model.safetensors.index.json"


def _index(model: Path, change) -> None:
    index = json.loads((model / INDEX).read_text())
    change(index["weight_map"])
    replace(model / INDEX, json.dumps(index).encode())


def test_an_index_that_is_gone_is_not_taken_for_none(tmp_path):
    """A link that leads nowhere, as a download leaves it that is not complete."""

    @isolated
    def check():
        model = linked("llama_f32", tmp_path / "model")
        (model / INDEX).symlink_to("gone")
        assert f"{model / INDEX}: is a link to a file that does not exist" in message_of(model)

    check()


def test_a_shard_that_is_missing(tmp_path):
    @isolated
    def check():
        model = linked("gemma3_vision", tmp_path / "model")
        shard = model / "model-00002-of-00003.safetensors"
        shard.unlink()
        assert f"{shard}: cannot be opened: No such file" in message_of(model)
        shard.symlink_to("gone")
        assert f"{shard}: is a link to a file that does not exist" in message_of(model)

    check()


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "x.bin", 7])
def test_an_index_that_leads_elsewhere(name, tmp_path):
    @isolated
    def check():
        model = linked("gemma3_vision", tmp_path / "model")
        _index(model, lambda weights: weights.update({next(iter(weights)): name}))
        said = message_of(model)
        assert f"{model}/{INDEX}: /weight_map is " in said

    check()


def test_an_index_of_nothing(tmp_path):
    @isolated
    def check():
        model = linked("gemma3_vision", tmp_path / "model")
        _index(model, dict.clear)
        assert f"{model}/{INDEX}: /weight_map is an object; it must be the files" in message_of(model)

    check()


def test_a_tensor_in_two_shards(tmp_path):
    @isolated
    def check():
        model = linked("gemma3_vision", tmp_path / "model")
        shard = model / "model-00003-of-00003.safetensors"
        replace(shard, (model / "model-00001-of-00003.safetensors").read_bytes())
        said = message_of(model)
        assert f"{shard}: the tensor '" in said
        assert "is also in " in said

    check()
