"""The metadata that every tiny decoder has, whatever its weights do."""

from __future__ import annotations

from tests.models.gguf_writer import F32, STRING, U32, GgufWriter


def decoder(
    architecture: str,
    name: str,
    *,
    context: int,
    width: int,
    layers: int,
    feed_forward: int,
    heads: int,
    kv_heads: int,
    head_size: int,
    rope_base: float,
    half: bool = False,
) -> GgufWriter:
    """A file with the keys that llama and gemma3 share; its vocabulary, its other keys and its tensors are to come."""
    file = GgufWriter(architecture, half)
    file.add("general.name", STRING, f"tiny-{architecture}-{name}")
    file.add("general.file_type", U32, 1 if half else 0)
    file.add(".context_length", U32, context)
    file.add(".embedding_length", U32, width)
    file.add(".block_count", U32, layers)
    file.add(".feed_forward_length", U32, feed_forward)
    file.add(".attention.head_count", U32, heads)
    file.add(".attention.head_count_kv", U32, kv_heads)
    file.add(".attention.key_length", U32, head_size)
    file.add(".attention.value_length", U32, head_size)
    file.add(".attention.layer_norm_rms_epsilon", F32, 1e-5)
    file.add(".rope.freq_base", F32, rope_base)
    return file
