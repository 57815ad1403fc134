"""The vocabulary of every tiny model: 362 tokens in SentencePiece's manner, and matrices that walk over them.

It holds <unk>, <s> and </s>, a token for each of the 256 bytes (text without a token of its own falls back to these),
printable ASCII one character a token, the word separator, and eight merges so that tokenizing is not just spelling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from random import Random

from tests.models.gguf_writer import BOOL, F32, I32, STRING, U32, GgufWriter

SPACE = "\u2581"  # SentencePiece's word separator
UNK, BOS, EOS = 0, 1, 2

ALPHABET = [*"abcdefghijklmnopqrstuvwxyz", SPACE]

# Each message on a line of its own, after its role; so simple that a test can write the result down.
CHAT_TEMPLATE = (
    "{% for m in messages %}{{'<|' + m.role + '|>' + m.content + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{'<|assistant|>'}}{% endif %}"
)

# llama.cpp's token types.
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

MERGES = ["th", "he", "in", "er", SPACE + "t", SPACE + "a", SPACE + "th", SPACE + "the"]


def _entries() -> list[tuple[str, float, int]]:
    entries = [("<unk>", 0.0, _UNKNOWN), ("<s>", 0.0, _CONTROL), ("</s>", 0.0, _CONTROL)]
    entries += [(f"<0x{byte:02X}>", 0.0, _BYTE) for byte in range(256)]
    characters = [SPACE, *map(chr, range(33, 127))]
    entries += [(character, -float(rank), _NORMAL) for rank, character in enumerate(characters)]
    # A merge must score above its parts, a longer one above a shorter one.
    entries += [(merge, 100.0 + rank, _NORMAL) for rank, merge in enumerate(MERGES)]
    return entries


TOKENS = [token for token, _, _ in _entries()]
SIZE = len(TOKENS)


def add_to(writer: GgufWriter) -> None:
    """Adds the tokenizer's keys to a file."""
    entries = _entries()
    writer.add(".vocab_size", U32, SIZE)
    writer.add("tokenizer.ggml.model", STRING, "llama")
    writer.add("tokenizer.ggml.pre", STRING, "default")
    writer.add_array("tokenizer.ggml.tokens", STRING, TOKENS)
    writer.add_array("tokenizer.ggml.scores", F32, [score for _, score, _ in entries])
    writer.add_array("tokenizer.ggml.token_type", I32, [kind for _, _, kind in entries])
    writer.add("tokenizer.ggml.bos_token_id", U32, BOS)
    writer.add("tokenizer.ggml.eos_token_id", U32, EOS)
    writer.add("tokenizer.ggml.unknown_token_id", U32, UNK)
    writer.add("tokenizer.ggml.add_bos_token", BOOL, True)
    writer.add("tokenizer.ggml.add_space_prefix", BOOL, False)
    writer.add("tokenizer.chat_template", STRING, CHAT_TEMPLATE)


def walk(tokens: Sequence[str]) -> dict[int, int]:
    """{token id: id of the one that follows}: from each of `tokens` to the next, and from the last to the first.

    A walk whose last token is </s> ends there. No token may come twice: the next one depends on the last alone.
    """
    ids = [TOKENS.index(token) for token in tokens]
    if len(set(ids)) != len(ids):
        raise ValueError(f"a token comes twice in {tokens}")
    following = dict(zip(ids, ids[1:] + ids[:1], strict=True))
    following.pop(EOS, None)
    return following


def unit(vector: Sequence[float]) -> list[float]:
    """`vector`, scaled to length 1."""
    length = math.sqrt(sum(map(mul, vector, vector)))
    return [x / length for x in vector]


def embeddings(random: Random, width: int) -> list[list[float]]:
    """A unit vector for each token. Random ones are nearly orthogonal, so the right logit wins by far."""
    return [unit([random.gauss(0, 1) for _ in range(width)]) for _ in range(SIZE)]


def output_for(following: dict[int, int], vectors: Sequence[Sequence[float]]) -> list[float]:
    """The output matrix (one row a token, row after row) that answers `vectors[t]` with the token after t."""
    width = len(vectors[0])
    rows = [[0.0] * width for _ in range(SIZE)]
    for token, successor in following.items():
        rows[successor] = [a + b for a, b in zip(rows[successor], vectors[token], strict=True)]
    return [x for row in rows for x in row]
