"""Writes a tiny llama or gemma3 model as GGUF: 2 layers, 64 wide, half a megabyte, in a fraction of a second.

--mode=walk: attention and feed-forward are zero, and the output matrix answers each token's embedding with the token
that follows it in the walk. Greedy decoding walks for ever from the prompt's last token, by huge margins, so a test
knows the exact text: after "abc", the alphabet goes on with "defghijklmno". The walk is the alphabet and a space, or
--walk: tokens with spaces between them, <0xF0> for a byte. It ends where </s> ends it.

--mode=random: seeded noise, which is text without meaning that depends on everything before it.
"""

from __future__ import annotations

import argparse
import math
from random import Random

from tests.models import vocabulary
from tests.models.decoder import decoder
from tests.models.gguf_writer import U32, GgufWriter

WIDTH, FEED_FORWARD, HEADS, KV_HEADS = 64, 128, 2, 1
HEAD_SIZE = 32  # a multiple of 32, so that quantised KV caches work


def make(architecture: str, mode: str, walk: list[str], half: bool, layers: int, context: int, seed: int) -> GgufWriter:
    """The model that the command's options of the same names describe."""
    random = Random(seed)
    file = decoder(
        architecture,
        mode,
        context=context,
        width=WIDTH,
        layers=layers,
        feed_forward=FEED_FORWARD,
        heads=HEADS,
        kv_heads=KV_HEADS,
        head_size=HEAD_SIZE,
        rope_base=10000.0,
        half=half,
    )
    if architecture == "llama":
        file.add(".rope.dimension_count", U32, HEAD_SIZE)
    else:
        file.add(".attention.sliding_window", U32, 32)
    vocabulary.add_to(file)

    def weights(name: str, outputs: int, inputs: int) -> None:
        scale = 1 / math.sqrt(inputs)
        noise = (random.gauss(0, scale) for _ in range(outputs * inputs)) if mode == "random" else None
        file.add_tensor(name, (outputs, inputs), noise and list(noise))

    def ones(name: str, size: int) -> None:
        file.add_tensor(name, (size,), [1.0] * size)

    embeddings = vocabulary.embeddings(random, WIDTH)
    shape = (vocabulary.SIZE, WIDTH)
    file.add_tensor("token_embd.weight", shape, [x for row in embeddings for x in row])
    ones("output_norm.weight", WIDTH)
    if mode == "walk":
        file.add_tensor("output.weight", shape, vocabulary.output_for(vocabulary.walk(walk), embeddings))
    else:
        file.add_tensor("output.weight", shape, [random.gauss(0, 1) for _ in range(math.prod(shape))])

    for layer in range(layers):
        block = f"blk.{layer}."
        ones(block + "attn_norm.weight", WIDTH)
        ones(block + "ffn_norm.weight", WIDTH)
        weights(block + "attn_q.weight", HEADS * HEAD_SIZE, WIDTH)
        weights(block + "attn_k.weight", KV_HEADS * HEAD_SIZE, WIDTH)
        weights(block + "attn_v.weight", KV_HEADS * HEAD_SIZE, WIDTH)
        weights(block + "attn_output.weight", WIDTH, HEADS * HEAD_SIZE)
        weights(block + "ffn_gate.weight", FEED_FORWARD, WIDTH)
        weights(block + "ffn_up.weight", FEED_FORWARD, WIDTH)
        weights(block + "ffn_down.weight", WIDTH, FEED_FORWARD)
        if architecture == "gemma3":
            ones(block + "attn_q_norm.weight", HEAD_SIZE)
            ones(block + "attn_k_norm.weight", HEAD_SIZE)
            ones(block + "post_attention_norm.weight", WIDTH)
            ones(block + "post_ffw_norm.weight", WIDTH)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--arch", default="llama", choices=["llama", "gemma3"])
    parser.add_argument("--mode", default="walk", choices=["walk", "random"])
    parser.add_argument("--walk", default=" ".join(vocabulary.ALPHABET))
    parser.add_argument("--f16", action="store_true")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    make(a.arch, a.mode, a.walk.split(" "), a.f16, a.layers, a.context, a.seed).write(a.out)


if __name__ == "__main__":
    main()
