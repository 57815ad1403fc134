"""GGUF files of the golden Gemma models: converted, they are those models again, and llama.cpp computes the same.

The random models of tests/models say the same in both runtimes (//tests/conformance:equivalence_test); these have what
those lack: embeddings of each layer's own, shared keys and values, keys as values, wide layers, partial rotation, the
soft cap, stretched positions.
"""

from __future__ import annotations

import re
from typing import Any

import _llama_cpp_testing
import _mlx_testing
import pytest
from elizainference import BundleError
from elizainference.convert import gguf_to_mlx

from tests.mlx.golden_test import TOLERANCE, compare
from tests.models import make_tiny_mlx, safetensors_writer, vocabulary
from tests.models.gguf_writer import BOOL, F32, I32, STRING, U32, GgufWriter
from tests.support.runfile import runfile

# Of the largest logit. llama.cpp looks GELU up in a table of 16-bit floats, and Gemma 4's attention, which scales
# nothing, makes much of that: 8.1e-3 was seen. Without the layers that have it, what is left is that mlx-lm rounds the
# scale of Gemma 3's embeddings to bfloat16.
LLAMA_CPP_TOLERANCE = 2e-2
WITHOUT_GELU_TOLERANCE = 1e-3

MODELS = ["gemma3_f32", "gemma3_vision", "gemma4_f32", "gemma4_wide"]

# {MLX's name: GGUF's}, of what is in every layer and of what is there once.
_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "layer_scalar": "layer_output_scale",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
}
_ONCE = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "embed_tokens_per_layer": "per_layer_token_embd",
    "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_projection_norm": "per_layer_proj_norm",
}


def _gguf_name(name: str) -> str:
    name = name.removesuffix(".weight").removeprefix("model.")
    layer = re.fullmatch(r"layers\.(\d+)\.(.+)", name)
    return (f"blk.{layer[1]}.{_LAYER[layer[2]]}" if layer else _ONCE[name]) + ".weight"


def _gemma3(config: dict[str, Any]) -> GgufWriter:
    file = GgufWriter("gemma3")
    file.add(".feed_forward_length", U32, config["intermediate_size"])
    file.add(".attention.head_count_kv", U32, config["num_key_value_heads"])
    for kind in ("key", "value"):
        file.add(f".attention.{kind}_length", U32, config["head_dim"])
    file.add(".attention.sliding_window_pattern", U32, config["sliding_window_pattern"])
    file.add(".rope.freq_base", F32, 1e6)
    if "rope_scaling" in config:
        file.add(".rope.scaling.type", STRING, config["rope_scaling"]["rope_type"])
        file.add(".rope.scaling.factor", F32, config["rope_scaling"]["factor"])
    return file


def _gemma4(config: dict[str, Any]) -> GgufWriter:
    file = GgufWriter("gemma4")
    layers, shared = config["num_hidden_layers"], config["num_kv_shared_layers"]
    slides = [(layer + 1) % config["sliding_window_pattern"] != 0 for layer in range(layers)]
    kv_heads = config["num_key_value_heads"]
    full_kv_heads = config.get("num_global_key_value_heads", kv_heads)
    width = config["intermediate_size"]
    file.add_array(".feed_forward_length", I32, [width * (1 + (layer >= layers - shared)) for layer in range(layers)])
    file.add_array(".attention.head_count_kv", I32, [kv_heads if sliding else full_kv_heads for sliding in slides])
    for kind in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        file.add(f".{kind}", U32, config["global_head_dim"])
        file.add(f".{kind}_swa", U32, config["head_dim"])
    file.add_array(".attention.sliding_window_pattern", BOOL, slides)
    file.add(".attention.shared_kv_layers", U32, shared)
    file.add(".embedding_length_per_layer_input", U32, config["hidden_size_per_layer_input"])
    file.add(".final_logit_softcapping", F32, 30.0)
    file.add(".rope.freq_base", F32, 1e6)
    pairs = config["global_head_dim"] // 2
    file.add_tensor("rope_freqs.weight", (pairs,), [1.0] * (pairs // 4) + [1e30] * (pairs - pairs // 4))
    return file


def gguf(name: str, gelu: bool = True) -> GgufWriter:
    """The GGUF file of the golden model NAME; without `gelu`, nothing that went through it is added to anything."""
    model = make_tiny_mlx.MODELS[name]
    config = model.config
    file = (_gemma3 if model.architecture == "gemma3_text" else _gemma4)(config)
    file.add(".context_length", U32, config["max_position_embeddings"])
    file.add(".embedding_length", U32, config["hidden_size"])
    file.add(".block_count", U32, config["num_hidden_layers"])
    file.add(".attention.head_count", U32, config["num_attention_heads"])
    file.add(".attention.layer_norm_rms_epsilon", F32, config["rms_norm_eps"])
    file.add(".attention.sliding_window", U32, config["sliding_window"])
    file.add(".rope.freq_base_swa", F32, 1e4)
    vocabulary.add_to(file)
    for tensor, value in make_tiny_mlx.tensors(model).items():
        less_one = model.architecture == "gemma3_text" and "norm" in tensor
        values = value.values()
        if not gelu and re.search(r"\.(down_proj|per_layer_projection)\.", tensor):
            values = [0.0] * len(values)
        file.add_tensor(_gguf_name(tensor), value.shape, [x + 1 for x in values] if less_one else values)
    return file


@pytest.mark.parametrize("name", MODELS)
def test_a_converted_model_is_the_golden_one(name, tmp_path):
    gguf(name).write(tmp_path / "m.gguf")
    made = gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m")
    tensors = safetensors_writer.load(made / "model.safetensors")
    original = make_tiny_mlx.tensors(make_tiny_mlx.MODELS[name])
    assert set(tensors) == set(original)
    for tensor, value in original.items():
        assert tensors[tensor].shape == value.shape
        # Gemma 3's norms went through 1 + w.
        assert list(tensors[tensor].values()) == pytest.approx(
            list(value.values()), abs=1e-7 if "norm" in tensor else 0
        )
    distance, mismatches = compare(made, name)
    assert distance < TOLERANCE
    assert mismatches == 0


@pytest.mark.parametrize(("gelu", "tolerance"), [(True, LLAMA_CPP_TOLERANCE), (False, WITHOUT_GELU_TOLERANCE)])
@pytest.mark.parametrize("name", MODELS)
def test_llama_cpp_computes_the_same(name, gelu, tolerance, tmp_path):
    gguf(name, gelu).write(tmp_path / "m.gguf")
    made = gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m")
    ids = list(safetensors_writer.load(runfile(f"tests/mlx/golden/{name}.safetensors"))["ids"].values())
    expected = _llama_cpp_testing.PlainLogits(str(tmp_path / "m.gguf")).logits(ids)
    rows = _mlx_testing.Model(str(made)).logits(ids)
    largest = max(abs(value) for row in expected for value in row)
    distance = max(
        abs(a - b) for row, wanted in zip(rows, expected, strict=True) for a, b in zip(row, wanted, strict=True)
    )
    assert distance < tolerance * largest


@pytest.mark.parametrize(
    ("name", "key", "kind", "value"),
    [
        ("gemma3_f32", ".attention.sliding_window", U32, 4096),
        ("gemma3_f32", ".rope.freq_base_swa", F32, 1e6),
        ("gemma3_vision", ".rope.scaling.factor", F32, 1.0),
        ("gemma4_f32", ".final_logit_softcapping", F32, 1000.0),
        ("gemma4_f32", ".rope.freq_base", F32, 1e4),
    ],
)
def test_another_value_is_another_model(name, key, kind, value, tmp_path):
    """What the file says is what the converted model does."""
    file = gguf(name)
    file.add(key, kind, value)  # the last one counts
    file.write(tmp_path / "m.gguf")
    assert compare(gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m"), name)[0] > 10 * TOLERANCE


def test_a_soft_cap_that_the_architecture_has_not(tmp_path):
    file = gguf("gemma3_f32")
    file.add(".final_logit_softcapping", F32, 30.0)
    file.write(tmp_path / "m.gguf")
    with pytest.raises(BundleError, match="final_logit_softcapping is 30"):
        gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m")
