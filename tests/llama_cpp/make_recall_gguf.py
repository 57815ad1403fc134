"""Writes a tiny model that remembers: what it says depends on one token from long ago.

    make_recall_gguf.py OUT.gguf [--arch llama|gemma3]

With an A anywhere before, greedy decoding goes on with the alphabet ("A...abc" -> "defg"); with a B, it goes backwards
("B...abc" -> "ba zyx"); with neither, the last letter repeats ("...abc" -> "cccc"). So a lost, moved or foreign KV
cache shows in the text, by huge margins, where the models of //tests/models (whose attention is zero) would not notice.

How: one attention head looks for A and B, and writes which it found into two columns of the residual stream. The
feed-forward layer is a switch: it copies the last letter's embedding to the columns that the output matrix reads
forwards (A), or to those that it reads backwards (B). In gemma3 that layer has a sliding window of 32 tokens (a second
one sees everything, and does nothing), so a model that remembers within its window, and only there.
"""

from __future__ import annotations

import argparse
from random import Random

from tests.models import vocabulary
from tests.models.decoder import decoder
from tests.models.gguf_writer import U32, GgufWriter

LETTERS = 56  # columns of a letter's embedding
IS_A, IS_B, ALWAYS, SAW_A, SAW_B = range(LETTERS, LETTERS + 5)
FORWARDS, BACKWARDS = 64, 128  # where the copies of a letter's embedding begin
WIDTH, HEAD_SIZE, FEED_FORWARD, WINDOW = 192, 32, 128, 32

Matrix = dict[tuple[int, int], float]  # {(output, input): weight}; the rest is zero


def dense(shape: tuple[int, int], matrix: Matrix) -> list[float]:
    values = [0.0] * (shape[0] * shape[1])
    for (row, column), value in matrix.items():
        values[row * shape[1] + column] = value
    return values


def make(architecture: str) -> GgufWriter:
    """The model that the command's option of the same name describes."""
    gemma = architecture == "gemma3"
    layers = 2 if gemma else 1
    file = decoder(
        architecture,
        "recall",
        context=4096,
        width=WIDTH,
        layers=layers,
        feed_forward=FEED_FORWARD,
        heads=1,
        kv_heads=1,
        head_size=HEAD_SIZE,
        rope_base=1e6,
    )
    if gemma:
        file.add(".attention.sliding_window", U32, WINDOW)
        file.add(".attention.sliding_window_pattern", U32, 2)  # the first layer has it, the second has not
    else:
        file.add(".rope.dimension_count", U32, HEAD_SIZE)
    vocabulary.add_to(file)

    letters = vocabulary.embeddings(Random(1), LETTERS)
    embeddings: Matrix = {}
    for token, vector in enumerate(letters):
        embeddings |= {(token, column): x for column, x in enumerate(vector)}
        embeddings[token, ALWAYS] = 1.0
    embeddings[vocabulary.TOKENS.index("A"), IS_A] = 1.0
    embeddings[vocabulary.TOKENS.index("B"), IS_B] = 1.0

    output: Matrix = {}
    for token, following in vocabulary.walk(vocabulary.ALPHABET).items():
        for column, x in enumerate(letters[token]):
            output[token, column] = 0.2 * x  # neither: the same letter again
            output[following, FORWARDS + column] = x
        for column, x in enumerate(letters[following]):
            output[token, BACKWARDS + column] = x

    # The pair of values that rotates most slowly with position: llama pairs neighbours, gemma3 pairs halves.
    slowest = HEAD_SIZE // 2 - 1 if gemma else HEAD_SIZE - 2
    switch = {(column, SAW_A): 1.0 for column in range(LETTERS)}
    switch |= {(LETTERS + column, SAW_B): 1.0 for column in range(LETTERS)}
    letter = {(half + column, column): 1.0 for half in (0, LETTERS) for column in range(LETTERS)}
    copies = {(FORWARDS + column, column): 0.1 for column in range(LETTERS)}
    copies |= {(BACKWARDS + column, LETTERS + column): 0.1 for column in range(LETTERS)}

    def matrix(name: str, outputs: int, inputs: int, weights: Matrix | None) -> None:
        file.add_tensor(name, (outputs, inputs), dense((outputs, inputs), weights) if weights else None)

    def vector(name: str, size: int, value: float = 1.0) -> None:
        file.add_tensor(name, (size,), [value] * size)

    matrix("token_embd.weight", vocabulary.SIZE, WIDTH, embeddings)
    vector("output_norm.weight", WIDTH)
    matrix("output.weight", vocabulary.SIZE, WIDTH, output)
    for layer in range(layers):
        block = f"blk.{layer}."
        used = layer == 0
        vector(block + "attn_norm.weight", WIDTH)
        vector(block + "ffn_norm.weight", WIDTH)
        matrix(block + "attn_q.weight", HEAD_SIZE, WIDTH, used and {(slowest, ALWAYS): 1.0})
        matrix(block + "attn_k.weight", HEAD_SIZE, WIDTH, used and {(slowest, IS_A): 3.0, (slowest, IS_B): 3.0})
        matrix(block + "attn_v.weight", HEAD_SIZE, WIDTH, used and {(0, IS_A): 1.0, (1, IS_B): 1.0})
        matrix(block + "attn_output.weight", WIDTH, HEAD_SIZE, used and {(SAW_A, 0): 0.25, (SAW_B, 1): 0.25})
        matrix(block + "ffn_gate.weight", FEED_FORWARD, WIDTH, used and switch)
        matrix(block + "ffn_up.weight", FEED_FORWARD, WIDTH, used and letter)
        matrix(block + "ffn_down.weight", WIDTH, FEED_FORWARD, used and copies)
        if gemma:
            # Norms of the head's own, which would make every key as long as A's and B's; theirs alone is not zero.
            vector(block + "attn_q_norm.weight", HEAD_SIZE, 4.0)
            vector(block + "attn_k_norm.weight", HEAD_SIZE)
            vector(block + "post_attention_norm.weight", WIDTH)
            vector(block + "post_ffw_norm.weight", WIDTH)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--arch", default="llama", choices=["llama", "gemma3"])
    a = parser.parse_args()
    make(a.arch).write(a.out)


if __name__ == "__main__":
    main()
