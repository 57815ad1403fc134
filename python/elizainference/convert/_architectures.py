"""What each architecture is called on both sides: the config of MLX's model, and the names of its tensors."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elizainference.convert._gguf import GgufFile, Tensor

_MOST = 1 << 24  # of a width, a count or a window


@dataclass(frozen=True)
class Target:
    """What becomes of a tensor.

    Attributes:
      heads: GGUF keeps the rows of a rotated projection of so many heads in another order; 0: it does not.
      add: what is added to each value.
    """

    name: str
    heads: int = 0
    add: float = 0.0


def row_order(rows: int, heads: int) -> list[int]:
    """For each row of the matrix in MLX's order (each head's first half, then its second), its row in the GGUF file,
    where the two halves' rows take turns."""
    size = rows // heads
    return [head * size + 2 * i + half for head in range(heads) for half in range(2) for i in range(size // 2)]


_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
}
_LLAMA = _LAYER | {"ffn_norm": "post_attention_layernorm"}
_GEMMA = _LAYER | {
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_GEMMA4 = _GEMMA | {
    "layer_output_scale": "layer_scalar",
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
}
_GEMMA4_TOP = _TOP | {
    "per_layer_token_embd": "model.embed_tokens_per_layer",
    "per_layer_model_proj": "model.per_layer_model_projection",
    "per_layer_proj_norm": "model.per_layer_projection_norm",
}
_WITHOUT_SUFFIX = {"layer_scalar"}


class Architecture:
    """One architecture's config and names, for a GGUF file of it."""

    model_type: str
    top = _TOP
    layer = _GEMMA

    def __init__(self, gguf: GgufFile) -> None:
        self.gguf = gguf
        self.layers = int(gguf.number(".block_count", 1, 4096))
        self.hidden = int(gguf.number(".embedding_length", 1, _MOST))
        self.heads = int(gguf.number(".attention.head_count", 1, 65536))
        self.kv_heads = self._first(".attention.head_count_kv", self.heads)
        self.head = int(gguf.number(".attention.key_length", 1, _MOST, self.hidden // self.heads))

    def config(self) -> dict[str, Any]:
        """config.json."""
        gguf = self.gguf
        config = {
            "model_type": self.model_type,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "intermediate_size": self._first(".feed_forward_length"),
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head,
            "rms_norm_eps": gguf.number(".attention.layer_norm_rms_epsilon", 0, 1),
            "vocab_size": self._rows("token_embd.weight"),
            "max_position_embeddings": int(gguf.number(".context_length", 1, 1 << 30)),
            "tie_word_embeddings": "output.weight" not in gguf.tensors,
        }
        for key, name in (("bos_token_id", "bos"), ("eos_token_id", "eos")):
            if f"tokenizer.ggml.{name}_token_id" in gguf.metadata:
                config[key] = gguf.metadata[f"tokenizer.ggml.{name}_token_id"]
        return config

    def targets(self) -> Iterator[tuple[Tensor, Target]]:
        """Every tensor and what becomes of it; what the config holds already is left out."""
        for name, tensor in self.gguf.tensors.items():
            if name != "rope_freqs.weight":
                yield tensor, self._target(tensor)

    def _target(self, tensor: Tensor) -> Target:
        match = re.fullmatch(r"(?:blk\.(\d{1,4})\.)?(\w+)\.(weight|bias)", tensor.name)
        names = self.layer if match and match[1] else self.top
        if not match or match[2] not in names or (match[1] and int(match[1]) >= self.layers):
            raise self.gguf.fail(f"has a tensor {tensor.name[:60]}, which {self.gguf.architecture} models have not")
        name = names[match[2]]
        suffix = "" if name in _WITHOUT_SUFFIX else "." + match[3]
        prefix = f"model.layers.{match[1]}." if match[1] else ""
        return self._change(match[2], tensor, prefix + name + suffix)

    def _change(self, part: str, tensor: Tensor, name: str) -> Target:
        del part, tensor
        return Target(name)

    def _rows(self, name: str) -> int:
        if name not in self.gguf.tensors:
            raise self.gguf.fail(f"has no tensor {name}")
        return self.gguf.tensors[name].shape[0]

    def _first(self, key: str, default: int | None = None) -> int:
        """A number, or the first of one for each layer."""
        value = self.gguf.metadata.get(self.gguf.architecture + key, default)
        if isinstance(value, list) and value and isinstance(value[0], int):
            value = value[0]
        if not isinstance(value, int) or not 1 <= value <= _MOST:
            raise self.gguf.fail(f"its {self.gguf.architecture}{key} is {value!r}, which cannot be")
        return value

    def _all(self, key: str, default: Any) -> list[Any]:
        value = self.gguf.metadata.get(self.gguf.architecture + key, default)
        values = value if isinstance(value, list) else [value] * self.layers
        if len(values) != self.layers:
            raise self.gguf.fail(f"its {self.gguf.architecture}{key} has {len(values)} values for {self.layers} layers")
        return values

    def _linear_scaling(self) -> dict[str, Any] | None:
        if self.gguf.metadata.get(self.gguf.architecture + ".rope.scaling.type", "none") == "none":
            return None
        kind = self.gguf.value(".rope.scaling.type", str)
        if kind != "linear":
            raise self.gguf.fail(f"its {self.gguf.architecture}.rope.scaling.type is {kind[:60]!r}; 'linear' is known")
        return {"rope_type": "linear", "factor": self.gguf.number(".rope.scaling.factor", 1e-6, 1e6)}

    def _rope_freqs(self) -> array[float] | None:
        tensor = self.gguf.tensors.get("rope_freqs.weight")
        if tensor is None:
            return None
        if len(tensor.shape) != 1 or tensor.shape[0] > 65536:
            raise self.gguf.fail(f"its tensor rope_freqs.weight has the shape {tensor.shape}")
        return tensor.type.values(self.gguf.bytes_of(tensor, 0, 1))


class Llama(Architecture):
    """Llama, SmolLM2."""

    model_type = "llama"
    layer = _LLAMA

    def config(self) -> dict[str, Any]:
        """config.json."""
        base = self.gguf.number(".rope.freq_base", 1, 1e12, 10000.0)
        if self.gguf.number(".rope.dimension_count", 1, _MOST, self.head) != self.head:
            raise self.gguf.fail("rotates a part of each head only, which MLX's llama does not")
        names = self.gguf.tensors
        config = super().config() | {
            "rope_theta": base,
            "attention_bias": "blk.0.attn_q.bias" in names,
            "mlp_bias": "blk.0.ffn_up.bias" in names,
        }
        factors = self._rope_freqs()
        scaling = self._llama3_scaling(factors, base) if factors is not None else self._linear_scaling()
        return config | ({"rope_scaling": scaling} if scaling else {})

    def _llama3_scaling(self, factors: array[float], base: float) -> dict[str, Any]:
        """The settings that these factors came from: GGUF keeps the result alone."""
        for factor in (8.0, 32.0):
            wanted = _llama3_factors(self.head, base, factor)
            if len(wanted) == len(factors) and all(map(_near, wanted, factors)):
                return {
                    "rope_type": "llama3",
                    "factor": factor,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 8192,
                }
        raise self.gguf.fail("its rope_freqs.weight is neither Llama 3.1's nor Llama 3.2's")

    def _change(self, part: str, tensor: Tensor, name: str) -> Target:
        heads = {"attn_q": self.heads, "attn_k": self.kv_heads}.get(part, 0)
        if heads and tensor.shape[0] % (2 * heads):
            raise self.gguf.fail(f"its tensor {tensor.name} has {tensor.shape[0]} rows for {heads} heads")
        return Target(name, heads=heads)


def _near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-4)


def _llama3_factors(head: int, base: float, factor: float) -> list[float]:
    low, high, original = 1.0, 4.0, 8192
    factors = []
    for i in range(0, head, 2):
        wavelength = 2 * math.pi * base ** (i / head)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors


class Gemma3(Architecture):
    """Gemma 3, its text part."""

    model_type = "gemma3_text"

    def config(self) -> dict[str, Any]:
        """config.json."""
        gguf = self.gguf
        cap = gguf.number(".final_logit_softcapping", 0, 1e6, 0)
        if cap:
            raise gguf.fail(f"its gemma3.final_logit_softcapping is {cap:g}, and MLX's gemma3 has no soft cap")
        # As llama.cpp does: the 27B model alone scales by its width.
        scalar = self.hidden // self.heads if self.layers == 62 else self.head
        scaling = self._linear_scaling()
        return (
            super().config()
            | {
                "query_pre_attn_scalar": scalar,
                "sliding_window": int(gguf.number(".attention.sliding_window", 1, _MOST)),
                "sliding_window_pattern": int(gguf.number(".attention.sliding_window_pattern", 1, 4096, 6)),
                "rope_theta": gguf.number(".rope.freq_base", 1, 1e12, 1e4),
                "rope_local_base_freq": gguf.number(".rope.freq_base_swa", 1, 1e12, 1e4),
            }
            | ({"rope_scaling": scaling} if scaling else {})
        )

    def _change(self, part: str, tensor: Tensor, name: str) -> Target:
        # GGUF keeps 1 + w, which the model multiplies by; MLX keeps w.
        return Target(name, add=-1.0 if part.endswith("_norm") else 0.0)


class Gemma4(Architecture):
    """Gemma 4, its text part, without experts."""

    model_type = "gemma4_text"
    layer = _GEMMA4
    top = _GEMMA4_TOP

    def config(self) -> dict[str, Any]:
        """config.json."""
        gguf = self.gguf
        if gguf.metadata.get(gguf.architecture + ".expert_count", 0):
            raise gguf.fail("is a mixture of experts, which cannot be converted")
        sliding = self._all(".attention.sliding_window_pattern", True)
        shared = int(gguf.number(".attention.shared_kv_layers", 0, self.layers - 1, 0))
        widths = self._all(".feed_forward_length", None)
        kv_heads = self._all(".attention.head_count_kv", self.heads)
        full = next((i for i, slides in enumerate(sliding) if not slides), None)
        config = super().config() | {
            "head_dim": int(gguf.number(".attention.key_length_swa", 1, _MOST, self.head)),
            "global_head_dim": self.head,
            "num_key_value_heads": next((n for n, s in zip(kv_heads, sliding, strict=True) if s), kv_heads[0]),
            "layer_types": ["sliding_attention" if slides else "full_attention" for slides in sliding],
            "sliding_window": int(gguf.number(".attention.sliding_window", 1, _MOST)),
            "num_kv_shared_layers": shared,
            "use_double_wide_mlp": widths[-1] == 2 * widths[0],
            "hidden_size_per_layer_input": int(gguf.number(".embedding_length_per_layer_input", 0, _MOST, 0)),
            "vocab_size_per_layer_input": self._rows("token_embd.weight"),
            "final_logit_softcapping": gguf.number(".final_logit_softcapping", 0, 1e6, 0) or None,
            "attention_k_eq_v": full is not None and f"blk.{full}.attn_v.weight" not in gguf.tensors,
            "enable_moe_block": False,
            "rope_parameters": {
                "full_attention": {
                    "rope_type": "proportional",
                    "rope_theta": gguf.number(".rope.freq_base", 1, 1e12),
                    "partial_rotary_factor": self._rotated(),
                },
                "sliding_attention": {
                    "rope_type": "default",
                    "rope_theta": gguf.number(".rope.freq_base_swa", 1, 1e12, 1e4),
                },
            },
        }
        if full is not None:
            config["num_global_key_value_heads"] = kv_heads[full]
        return config

    def _rotated(self) -> float:
        """The part of each head of a full layer that is rotated: the frequencies of the others are divided away."""
        factors = self._rope_freqs()
        if factors is None:
            return 1.0
        return sum(factor < 1e20 for factor in factors) / len(factors)


ARCHITECTURES: dict[str, type[Architecture]] = {"llama": Llama, "gemma3": Gemma3, "gemma4": Gemma4}


def architecture(gguf: GgufFile) -> Architecture:
    """The architecture of a file.

    Raises:
      BundleError: one that is not known.
    """
    if gguf.architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise gguf.fail(
            f"its general.architecture is {gguf.architecture[:60]!r}, which cannot be converted; known: {known}"
        )
    return ARCHITECTURES[gguf.architecture](gguf)
