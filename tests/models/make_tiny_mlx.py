#!/usr/bin/env python3
"""Tiny models as MLX keeps them: config.json, *.safetensors, tokenizer.json. Random weights, the same everywhere.

    make_tiny_mlx.py OUT_DIR NAME

writes the model NAME of MODELS. The weights depend on the names of tensors alone, so that the logits which mlx-lm
computed once from the same weights (make_mlx_golden.py) stay true.
"""

from __future__ import annotations

import argparse
import json
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.models import safetensors_writer, vocabulary
from tests.models.safetensors_writer import Tensor

Shapes = Iterator[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Model:
    """A model: its architecture, its config and how it is kept."""

    config: dict[str, Any]
    bits: int = 0  # 0: not quantised
    group_size: int = 64
    shards: int = 1
    prefix: str = ""  # of every tensor; with one, the config is that of a model with vision

    @property
    def architecture(self) -> str:
        """mlx-lm's module of this model."""
        return self.config["model_type"]


def _config(model_type: str, **values: Any) -> dict[str, Any]:
    common = {
        "model_type": model_type,
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "intermediate_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "vocab_size": vocabulary.SIZE,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 4096,
    }
    return common | values


def _gemma3(**values: Any) -> dict[str, Any]:
    return _config("gemma3_text", query_pre_attn_scalar=64, sliding_window=8, sliding_window_pattern=2, **values)


def _gemma4(**values: Any) -> dict[str, Any]:
    defaults = {
        "num_hidden_layers": 6,
        "global_head_dim": 128,
        "vocab_size_per_layer_input": vocabulary.SIZE,
        "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 32,
        "sliding_window": 8,
        "sliding_window_pattern": 2,
    }
    return _config("gemma4_text", **(defaults | values))


def _llama(**values: Any) -> dict[str, Any]:
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        # So short that the 24 positions of a test see stretched, kept and mixed frequencies.
        "original_max_position_embeddings": 64,
    }
    defaults = {"num_key_value_heads": 2, "head_dim": 32, "rope_theta": 10000.0, "rope_scaling": scaling}
    return _config("llama", **(defaults | values))


MODELS = {
    "gemma3_f32": Model(_gemma3()),
    "gemma3_q4": Model(_gemma3(), bits=4),
    # Kept as models with vision are: in shards, its tensors and its config below others' names.
    "gemma3_vision": Model(
        _gemma3(rope_scaling={"rope_type": "linear", "factor": 8.0}), shards=3, prefix="language_model."
    ),
    "gemma4_f32": Model(_gemma4()),
    # What the larger ones do: no embeddings of each layer's own, keys as values, nothing shared.
    "gemma4_wide": Model(
        _gemma4(
            num_hidden_layers=4,
            num_key_value_heads=2,
            num_global_key_value_heads=1,
            attention_k_eq_v=True,
            num_kv_shared_layers=0,
            hidden_size_per_layer_input=0,
        )
    ),
    "llama_f32": Model(_llama(tie_word_embeddings=True)),
    "llama_q8": Model(_llama(tie_word_embeddings=False, attention_bias=True, mlp_bias=True), bits=8, group_size=32),
}


# -- Tensors --------------------------------------------------------------------------------------


def _linear(path: str, out: int, width: int, bias: bool = False) -> Shapes:
    yield f"{path}.weight", (out, width)
    if bias:
        yield f"{path}.bias", (out,)


def _mlp(path: str, width: int, hidden: int, bias: bool = False) -> Shapes:
    yield from _linear(f"{path}.gate_proj", hidden, width, bias)
    yield from _linear(f"{path}.up_proj", hidden, width, bias)
    yield from _linear(f"{path}.down_proj", width, hidden, bias)


def _gemma_norms(path: str, width: int) -> Shapes:
    for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
        yield f"{path}.{norm}_layernorm.weight", (width,)


def gemma3_text(config: Mapping[str, Any]) -> Shapes:
    """Names and shapes of its tensors."""
    width, head = config["hidden_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    for i in range(config["num_hidden_layers"]):
        path = f"model.layers.{i}"
        yield from _gemma_norms(path, width)
        yield from _linear(f"{path}.self_attn.q_proj", queries, width)
        yield from _linear(f"{path}.self_attn.k_proj", keys, width)
        yield from _linear(f"{path}.self_attn.v_proj", keys, width)
        yield from _linear(f"{path}.self_attn.o_proj", width, queries)
        yield f"{path}.self_attn.q_norm.weight", (head,)
        yield f"{path}.self_attn.k_norm.weight", (head,)
        yield from _mlp(f"{path}.mlp", width, config["intermediate_size"])
    yield "model.norm.weight", (width,)


def gemma4_text(config: Mapping[str, Any]) -> Shapes:
    """Names and shapes of its tensors."""
    width, layers, per_layer = (
        config["hidden_size"],
        config["num_hidden_layers"],
        config["hidden_size_per_layer_input"],
    )
    own = layers - config["num_kv_shared_layers"]
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    if per_layer:
        yield "model.embed_tokens_per_layer.weight", (config["vocab_size_per_layer_input"], layers * per_layer)
        yield "model.per_layer_model_projection.weight", (layers * per_layer, width)
        yield "model.per_layer_projection_norm.weight", (per_layer,)
    for i in range(layers):
        path = f"model.layers.{i}"
        full = (i + 1) % config["sliding_window_pattern"] == 0
        head = config["global_head_dim"] if full else config["head_dim"]
        shared_kv = full and config.get("attention_k_eq_v", False)
        kv_heads = config["num_global_key_value_heads"] if shared_kv else config["num_key_value_heads"]
        yield from _gemma_norms(path, width)
        yield from _linear(f"{path}.self_attn.q_proj", config["num_attention_heads"] * head, width)
        yield from _linear(f"{path}.self_attn.o_proj", width, config["num_attention_heads"] * head)
        yield f"{path}.self_attn.q_norm.weight", (head,)
        if i < own:
            yield from _linear(f"{path}.self_attn.k_proj", kv_heads * head, width)
            if not shared_kv:
                yield from _linear(f"{path}.self_attn.v_proj", kv_heads * head, width)
            yield f"{path}.self_attn.k_norm.weight", (head,)
        yield from _mlp(f"{path}.mlp", width, config["intermediate_size"] * (1 if i < own else 2))
        if per_layer:
            yield from _linear(f"{path}.per_layer_input_gate", per_layer, width)
            yield from _linear(f"{path}.per_layer_projection", width, per_layer)
            yield f"{path}.post_per_layer_input_norm.weight", (width,)
        yield f"{path}.layer_scalar", (1,)
    yield "model.norm.weight", (width,)


def llama(config: Mapping[str, Any]) -> Shapes:
    """Names and shapes of its tensors."""
    width, head = config["hidden_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    attention_bias, mlp_bias = config.get("attention_bias", False), config.get("mlp_bias", False)
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    for i in range(config["num_hidden_layers"]):
        path = f"model.layers.{i}"
        yield f"{path}.input_layernorm.weight", (width,)
        yield from _linear(f"{path}.self_attn.q_proj", queries, width, attention_bias)
        yield from _linear(f"{path}.self_attn.k_proj", keys, width, attention_bias)
        yield from _linear(f"{path}.self_attn.v_proj", keys, width, attention_bias)
        yield from _linear(f"{path}.self_attn.o_proj", width, queries, attention_bias)
        yield f"{path}.post_attention_layernorm.weight", (width,)
        yield from _mlp(f"{path}.mlp", width, config["intermediate_size"], mlp_bias)
    yield "model.norm.weight", (width,)
    if not config["tie_word_embeddings"]:
        yield from _linear("lm_head", config["vocab_size"], width)


_SHAPES = {"gemma3_text": gemma3_text, "gemma4_text": gemma4_text, "llama": llama}


def _random(name: str, shape: tuple[int, ...], plus_one: bool) -> array:
    """Values between bounds that keep activations of a few layers in range; norms are near 1 (`plus_one`) or 0."""
    uniform = Random(name).random
    is_norm = "norm" in name or "layer_scalar" in name
    middle = 1.0 if is_norm and plus_one else 0.0
    spread = 1.0 if is_norm else 0.28
    count = 1
    for size in shape:
        count *= size
    return array("f", [middle + spread * (uniform() - 0.5) for _ in range(count)])


def _quantise(rows: list[array], bits: int, group_size: int) -> tuple[array, array, array]:
    """MLX's affine quantisation: packed values (a stream of bits, lowest first), scales and biases of each group."""
    packed, scales, biases = array("I"), array("f"), array("f")
    most = (1 << bits) - 1
    for row in rows:
        stream, filled = 0, 0
        for begin in range(0, len(row), group_size):
            group = row[begin : begin + group_size]
            low, high = min(group), max(group)
            scales.append((high - low) / most)
            biases.append(low)
            scale = scales[-1] or 1.0
            for value in group:
                stream |= min(most, max(0, round((value - low) / scale))) << filled
                filled += bits
        packed.frombytes(stream.to_bytes(filled // 8, "little"))
    return packed, scales, biases


def tensors(model: Model) -> dict[str, Tensor]:
    """The tensors of a model, without its prefix."""
    result: dict[str, Tensor] = {}
    plus_one = model.architecture != "gemma3_text"  # whose norms are kept less one
    for name, shape in _SHAPES[model.architecture](model.config):
        values = _random(name, shape, plus_one)
        if not model.bits or len(shape) != 2:
            result[name] = Tensor.of("F32", shape, values)
            continue
        path, (out, width) = name.removesuffix(".weight"), shape
        rows = [values[i : i + width] for i in range(0, len(values), width)]
        packed, scales, biases = _quantise(rows, model.bits, model.group_size)
        result[f"{path}.weight"] = Tensor.of("U32", (out, width * model.bits // 32), packed)
        result[f"{path}.scales"] = Tensor.of("F32", (out, width // model.group_size), scales)
        result[f"{path}.biases"] = Tensor.of("F32", (out, width // model.group_size), biases)
    return result


# -- Files ----------------------------------------------------------------------------------------


def tokenizer() -> dict[str, Any]:
    """tokenizer.json of the tiny vocabulary, as a converted SentencePiece model has it."""
    special = [(vocabulary.UNK, "<unk>"), (vocabulary.BOS, "<s>"), (vocabulary.EOS, "</s>")]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    begin = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": token, "content": text} | flags for token, text in special],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": vocabulary.SPACE},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [
                begin,
                {"Sequence": {"id": "A", "type_id": 0}},
                begin,
                {"Sequence": {"id": "B", "type_id": 1}},
            ],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [vocabulary.BOS], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": vocabulary.SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(vocabulary.TOKENS)},
            # The best first: those of the highest score.
            "merges": [[merge[:-1], merge[-1]] for merge in reversed(vocabulary.MERGES)],
        },
    }


def config_json(model: Model) -> dict[str, Any]:
    """The config.json of a model."""
    config = dict(model.config)
    if model.bits:
        config["quantization"] = {"group_size": model.group_size, "bits": model.bits, "mode": "affine"}
    config["eos_token_id"] = vocabulary.EOS
    if not model.prefix:
        return config
    return {
        "model_type": config["model_type"].removesuffix("_text"),
        "vocab_size": config.pop("vocab_size"),
        "eos_token_id": config.pop("eos_token_id"),
        "text_config": config,
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def make(name: str) -> dict[str, bytes]:
    """{file name: its bytes} of the model NAME of MODELS."""
    model = MODELS[name]
    files = {
        "config.json": _json(config_json(model)),
        "tokenizer.json": _json(tokenizer()),
        "tokenizer_config.json": _json(
            {
                "add_bos_token": True,
                "bos_token": "<s>",
                "eos_token": "</s>",
                "chat_template": vocabulary.CHAT_TEMPLATE,
            }
        ),
    }
    named = {model.prefix + tensor: value for tensor, value in tensors(model).items()}
    if model.shards == 1:
        files["model.safetensors"] = safetensors_writer.dumps(named, {"format": "mlx"})
        return files
    weight_map = {}
    for shard in range(model.shards):
        file = f"model-{shard + 1:05}-of-{model.shards:05}.safetensors"
        part = {tensor: value for i, (tensor, value) in enumerate(named.items()) if i % model.shards == shard}
        weight_map |= dict.fromkeys(part, file)
        files[file] = safetensors_writer.dumps(part, {"format": "mlx"})
    files["model.safetensors.index.json"] = _json({"metadata": {}, "weight_map": weight_map})
    return files


def main() -> None:
    """Writes a model directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("name", choices=MODELS)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    for name, data in make(arguments.name).items():
        (arguments.directory / name).write_bytes(data)


if __name__ == "__main__":
    main()
