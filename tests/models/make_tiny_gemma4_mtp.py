"""Writes a tiny gemma4 model and its MTP drafter (gemma4-assistant), both walking the alphabet: see make_tiny_gguf.py.

    make_tiny_gemma4_mtp.py TARGET.gguf DRAFTER.gguf [--wrong LETTERS]

--wrong: letters after which the drafter predicts the letter after the right one, for a known number of rejections.
The drafter has no keys and values of its own: its layers read those of the target's last two, so the target needs
a full-attention layer last and a sliding-window layer before it.
"""

from __future__ import annotations

import argparse
from operator import mul
from random import Random

from tests.models import vocabulary
from tests.models.gguf_writer import BOOL, F32, STRING, U32, GgufWriter

TARGET_WIDTH, DRAFTER_WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_SIZE = 64, 32, 2, 2, 1, 32


def _file(architecture: str, width: int) -> GgufWriter:
    file = GgufWriter(architecture)
    file.add("general.name", STRING, "tiny-" + architecture)
    file.add("general.file_type", U32, 0)
    file.add(".context_length", U32, 2048)
    file.add(".embedding_length", U32, width)
    file.add(".embedding_length_per_layer_input", U32, 0)
    file.add(".block_count", U32, LAYERS)
    file.add(".feed_forward_length", U32, 2 * width)
    file.add(".attention.head_count", U32, HEADS)
    file.add(".attention.head_count_kv", U32, KV_HEADS)
    file.add(".attention.shared_kv_layers", U32, 0)
    file.add(".attention.layer_norm_rms_epsilon", F32, 1e-6)
    file.add(".attention.sliding_window", U32, 32)
    file.add_array(".attention.sliding_window_pattern", BOOL, [True, False])
    for suffix in ("", "_swa"):
        file.add(".attention.key_length" + suffix, U32, HEAD_SIZE)
        file.add(".attention.value_length" + suffix, U32, HEAD_SIZE)
        file.add(".rope.dimension_count" + suffix, U32, HEAD_SIZE)
    file.add(".rope.freq_base", F32, 1e6)
    file.add(".rope.freq_base_swa", F32, 1e4)
    vocabulary.add_to(file)
    return file


def _ones(file: GgufWriter, name: str, size: int) -> None:
    file.add_tensor(name, (size,), [1.0] * size)


def _add_layers(file: GgufWriter, width: int, own_kv: bool) -> None:
    _ones(file, "rope_freqs.weight", HEAD_SIZE // 2)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name in ("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"):
            _ones(file, block + name + ".weight", width)
        _ones(file, block + "attn_q_norm.weight", HEAD_SIZE)
        _ones(file, block + "layer_output_scale.weight", 1)
        if own_kv:
            _ones(file, block + "attn_k_norm.weight", HEAD_SIZE)
            file.add_tensor(block + "attn_k.weight", (KV_HEADS * HEAD_SIZE, width))
            file.add_tensor(block + "attn_v.weight", (KV_HEADS * HEAD_SIZE, width))
        file.add_tensor(block + "attn_q.weight", (HEADS * HEAD_SIZE, width))
        file.add_tensor(block + "attn_output.weight", (width, HEADS * HEAD_SIZE))
        file.add_tensor(block + "ffn_gate.weight", (2 * width, width))
        file.add_tensor(block + "ffn_up.weight", (2 * width, width))
        file.add_tensor(block + "ffn_down.weight", (width, 2 * width))


def make_target(embeddings: list[list[float]]) -> GgufWriter:
    """The model; `embeddings` are its token vectors."""
    file = _file("gemma4", TARGET_WIDTH)
    shape = (vocabulary.SIZE, TARGET_WIDTH)
    file.add_tensor("token_embd.weight", shape, [x for row in embeddings for x in row])
    _ones(file, "output_norm.weight", TARGET_WIDTH)
    following = vocabulary.walk(vocabulary.ALPHABET)
    file.add_tensor("output.weight", shape, vocabulary.output_for(following, embeddings))
    _add_layers(file, TARGET_WIDTH, own_kv=True)
    return file


def _orthonormal_rows(random: Random, count: int, width: int) -> list[list[float]]:
    # Gram-Schmidt.
    rows: list[list[float]] = []
    for _ in range(count):
        row = [random.gauss(0, 1) for _ in range(width)]
        for other in rows:
            overlap = sum(map(mul, row, other))
            row = [x - overlap * y for x, y in zip(row, other, strict=True)]
        rows.append(vocabulary.unit(row))
    return rows


def make_drafter(random: Random, embeddings: list[list[float]], wrong: str) -> GgufWriter:
    """The drafter of a target with these `embeddings`."""
    file = _file("gemma4-assistant", DRAFTER_WIDTH)
    file.add(".embedding_length_out", U32, TARGET_WIDTH)
    file.add(".nextn_predict_layers", U32, LAYERS)

    # It sees the target's token vector next to the target's last state, and takes a projection of the former.
    projection = _orthonormal_rows(random, DRAFTER_WIDTH, TARGET_WIDTH)
    seen = [vocabulary.unit([sum(map(mul, row, vector)) for row in projection]) for vector in embeddings]
    right = vocabulary.walk(vocabulary.ALPHABET)
    drafted = {
        token: right[successor] if vocabulary.TOKENS[token] in wrong else successor
        for token, successor in right.items()
    }
    file.add_tensor("token_embd.weight", (vocabulary.SIZE, DRAFTER_WIDTH), vocabulary.output_for(drafted, seen))
    _ones(file, "output_norm.weight", DRAFTER_WIDTH)
    both = [x for row in projection for x in row + [0.0] * TARGET_WIDTH]
    file.add_tensor("nextn.pre_projection.weight", (DRAFTER_WIDTH, 2 * TARGET_WIDTH), both)
    file.add_tensor("nextn.post_projection.weight", (TARGET_WIDTH, DRAFTER_WIDTH))
    _add_layers(file, DRAFTER_WIDTH, own_kv=False)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("drafter")
    parser.add_argument("--wrong", default="", metavar="LETTERS")
    a = parser.parse_args()
    random = Random(7)
    embeddings = vocabulary.embeddings(random, TARGET_WIDTH)
    make_target(embeddings).write(a.target)
    make_drafter(random, embeddings, a.wrong).write(a.drafter)


if __name__ == "__main__":
    main()
