"""Malformed GGUF files by class, the same ones on every run: {class: {name: bytes}}.

Each is made from a good tiny model by one lie, so that everything before the lie is read and believed.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Iterator

from tests.models import make_tiny_gguf, vocabulary
from tests.models.gguf_writer import ARRAY, BOOL, F32, I32, STRING, U32, GgufWriter

U8, I8, U16, I16, U64, I64, F64 = 0, 1, 2, 3, 10, 11, 12
I8_TENSOR, I16_TENSOR, I32_TENSOR, I64_TENSOR, F64_TENSOR = 24, 25, 26, 27, 28
SIZES = {U8: 1, I8: 1, U16: 2, I16: 2, U32: 4, I32: 4, F32: 4, BOOL: 1, U64: 8, I64: 8, F64: 8}

# Where lengths and counts wrap, or become negative.
EDGES = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


def writer() -> GgufWriter:
    """A good model: one layer, half a megabyte less."""
    return make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, True, 1, 256, 1)


@functools.cache
def good() -> bytes:
    """Its bytes."""
    return writer().to_bytes()


def string(text: bytes) -> bytes:
    """A string as the format has it."""
    return struct.pack("<Q", len(text)) + text


def header(tensors: int, keys: int, version: int = 3) -> bytes:
    """The fixed part of the header."""
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def key(name: str, kind: int, value: bytes) -> bytes:
    """A key-value pair."""
    return string(name.encode()) + struct.pack("<I", kind) + value


def replaced(name: str, pair: bytes | None) -> bytes:
    """The good model with the pair of a key replaced (None: left out)."""
    return with_pairs({name: pair})


def with_pairs(pairs: dict[str, bytes | None]) -> bytes:
    """The same for several keys."""
    file = writer()
    for name, pair in pairs.items():
        full = f"llama{name}" if name.startswith(".") else name
        mark = string(full.encode())
        at = next((i for i, old in enumerate(file._pairs) if old.startswith(mark)), len(file._pairs))
        file._pairs[at : at + 1] = [] if pair is None else [mark + pair]
    return file.to_bytes()


def byte_level(pre: str, merges: list[str]) -> bytes:
    """The good model with a vocabulary of printable ASCII and merges, before which text is split as `pre` says."""
    tokens = [*map(chr, range(33, 127)), *(merge.replace(" ", "") for merge in merges)]
    tokens += [f"<{i}>" for i in range(vocabulary.SIZE - len(tokens))]

    def array(kind: int, values: list[bytes]) -> bytes:
        return scalar(ARRAY, struct.pack("<IQ", kind, len(values)) + b"".join(values))

    def strings(texts: list[str]) -> bytes:
        return array(STRING, [string(text.encode()) for text in texts])

    return with_pairs(
        {
            "tokenizer.ggml.model": scalar(STRING, string(b"gpt2")),
            "tokenizer.ggml.pre": scalar(STRING, string(pre.encode())),
            "tokenizer.ggml.tokens": strings(tokens),
            "tokenizer.ggml.token_type": array(I32, [struct.pack("<i", 1)] * len(tokens)),
            "tokenizer.ggml.merges": strings(merges),
        }
    )


def scalar(kind: int, value: bytes) -> bytes:
    """The part of a pair after its name."""
    return struct.pack("<I", kind) + value


def fields() -> Iterator[tuple[str, int]]:
    """(what ends there, offset) for every field of the good model's header, elements of long arrays left out."""
    data = good()
    tensors, keys = struct.unpack_from("<QQ", data, 8)
    yield from [("magic", 4), ("version", 8), ("tensor count", 16), ("key count", 24)]
    at = 24

    def past_string(what: str) -> Iterator[tuple[str, int]]:
        nonlocal at
        (size,) = struct.unpack_from("<Q", data, at)
        yield f"length of {what}", at + 8
        at += 8 + size
        yield what, at

    for index in range(keys):
        yield from past_string(f"name of key {index}")
        (kind,) = struct.unpack_from("<I", data, at)
        at += 4
        yield f"type of key {index}", at
        if kind == STRING:
            yield from past_string(f"value of key {index}")
        elif kind == ARRAY:
            element, count = struct.unpack_from("<IQ", data, at)
            yield f"element type of key {index}", at + 4
            yield f"count of key {index}", at + 12
            at += 12
            for number in range(count):
                if element != STRING:
                    at += SIZES[element]
                elif number in (0, count - 1):
                    yield from past_string(f"element {number} of key {index}")
                else:
                    at += 8 + struct.unpack_from("<Q", data, at)[0]
            yield f"value of key {index}", at
        else:
            at += SIZES[kind]
            yield f"value of key {index}", at
    for index in range(tensors):
        yield from past_string(f"name of tensor {index}")
        (dimensions,) = struct.unpack_from("<I", data, at)
        at += 4
        yield f"dimensions of tensor {index}", at
        for dimension in range(dimensions):
            at += 8
            yield f"extent {dimension} of tensor {index}", at
        yield f"type of tensor {index}", at + 4
        at += 12
        yield f"offset of tensor {index}", at
    yield "half of the data", (at + len(data)) // 2
    yield "all but a byte of the data", len(data) - 1


def truncated() -> dict[str, bytes]:
    """Cut off behind every field of the header, as a download that stopped; and one byte before."""
    cuts = {f"behind {what}": good()[:at] for what, at in fields()}
    return cuts | {f"inside {what}": good()[: at - 1] for what, at in list(fields())[:24]}


def lying_counts() -> dict[str, bytes]:
    """Counts and lengths that no file can hold."""
    padding = bytes(4096)
    cases = {}
    for edge in EDGES:
        number = struct.pack("<Q", edge)
        cases |= {
            f"{edge} tensors": b"GGUF" + struct.pack("<I", 3) + number + struct.pack("<Q", 1) + good()[24:],
            f"{edge} keys": b"GGUF" + struct.pack("<IQ", 3, 1) + number + good()[24:],
            f"a key of {edge} bytes": header(0, 1) + number + padding,
            f"a string of {edge} bytes": header(0, 1) + key("a", STRING, number) + padding,
            f"an architecture of {edge} bytes": replaced("general.architecture", scalar(STRING, number)),
            f"an array of {edge} bytes": header(0, 1) + key("a", ARRAY, struct.pack("<I", U8) + number) + padding,
            f"an array of {edge} numbers": header(0, 1) + key("a", ARRAY, struct.pack("<I", U64) + number) + padding,
            f"an array of {edge} strings": header(0, 1) + key("a", ARRAY, struct.pack("<I", STRING) + number) + padding,
            f"{edge} tokens": replaced("tokenizer.ggml.tokens", scalar(ARRAY, struct.pack("<I", STRING) + number)),
            f"{edge} scores": replaced("tokenizer.ggml.scores", scalar(ARRAY, struct.pack("<I", F32) + number)),
        }
    for count in (0, 5, 255, 2**31, 2**32 - 1):
        cases[f"{count} dimensions"] = one_tensor([32], dimensions=count)
    return cases


def one_tensor(shape: list[int], kind: int = 0, offset: int = 0, dimensions: int | None = None, name=b"t") -> bytes:
    """A file with a tensor of that description, and 4 KB of data."""
    count = len(shape) if dimensions is None else dimensions
    table = string(name) + struct.pack(f"<I{len(shape)}QIQ", count, *shape, kind, offset)
    return header(1, 1) + key("general.architecture", STRING, string(b"llama")) + table + bytes(4096)


def overflowing_products() -> dict[str, bytes]:
    """Extents whose product, or end, wraps around."""
    shapes = [
        [2**31 - 1] * 4,
        [2**32, 2**32],
        [2**33, 2**31],
        [2**62, 4],
        [2**63 - 1, 2],
        [2**63, 1],
        [2**64 - 1, 1],
        [2**64 - 32, 1],
        [3, 2**62 + 1],
        [32, 2**59],
        [2**16] * 4,
        [1, 1, 1, 2**63],
    ]
    cases = {f"extents {shape}": one_tensor(shape) for shape in shapes}
    for offset in (2**20, 2**32, 2**63, 2**64 - 32, 2**64 - 4096):
        cases[f"an offset of {offset}"] = one_tensor([32], offset=offset)
    return cases


def tensors() -> dict[str, bytes]:
    """Tensors of no type, out of line, on top of each other, or of a shape the model has not."""
    cases = {f"type {kind}": one_tensor([256], kind) for kind in (4, 5, 31, 33, 36, 43, 255, 2**31, 2**32 - 1)}
    cases |= {f"half a block of type {kind}": one_tensor([16], kind) for kind in (2, 8, 12, 20, 30 + 9)}
    cases |= {f"unaligned by {offset}": one_tensor([8], offset=offset) for offset in (1, 8, 31)}
    cases |= {f"an extent of {extent}": one_tensor([extent]) for extent in (0, 2**63, 2**64 - 1)}
    cases["a name of 64 bytes"] = one_tensor([8], name=b"t" * 64)
    cases["a name that goes on"] = one_tensor([8], name=b"t" * 4000)
    cases["a name that is not UTF-8"] = one_tensor([8], kind=99, name=b"\xff\xfe\xc3")

    def changed(index: int, **changes) -> bytes:
        file = writer()
        name, shape, kind, data = file._tensors[index]
        values = {"name": name, "shape": shape, "kind": kind, "data": data} | changes
        file._tensors[index] = (values["name"], values["shape"], values["kind"], values["data"])
        return file.to_bytes()

    count = len(writer()._tensors)
    for index in range(count):
        name = writer()._tensors[index][0]
        cases[f"no {name}"] = changed(index, name="lost.weight")
        cases[f"{name} of another shape"] = changed(index, shape=(32,), kind=0, data=bytes(128))
    cases["two of one name"] = changed(1, name=writer()._tensors[0][0])
    cases["a name of no tensor"] = changed(0, name="")
    return cases


# ggml's types that have a size and are not computed with: {type: bytes of 32 elements}.
_NO_MATRICES = {9: 36, I8_TENSOR: 32, I16_TENSOR: 64, I32_TENSOR: 128, I64_TENSOR: 256, F64_TENSOR: 256}
_NO_SCALES = _NO_MATRICES | {1: 64, 2: 18, 8: 34, 30: 64}


def types_of_tensors() -> dict[str, bytes]:
    """Tensors of the right shape, in a type that what is computed with them cannot take: half a scale, integers."""
    cases = {}
    for index, (name, shape, _, _) in enumerate(writer()._tensors):
        for kind, block in (_NO_SCALES if len(shape) == 1 else _NO_MATRICES).items():
            file = writer()
            file._tensors[index] = (name, shape, kind, bytes(math.prod(shape) // 32 * block))
            cases[f"{name} of type {kind}"] = file.to_bytes()
    return cases


def half_true() -> dict[str, bytes]:
    """Hyperparameters that are possible by themselves: some of these models can be loaded, and none is what it says."""
    cases = {}
    for name in [
        ".context_length",
        ".feed_forward_length",
        ".attention.sliding_window",
        ".attention.sliding_window_pattern",
        ".embedding_length_out",
        ".expert_count",
        ".pooling_type",
        ".rope.scaling.original_context_length",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.unknown_token_id",
        "tokenizer.ggml.padding_token_id",
    ]:
        for value in (0, 1, 3, 100, 65536, 2**31 - 1):
            cases[f"{name} = {value}"] = replaced(name, scalar(U32, struct.pack("<I", value)))
    for name in [".rope.freq_base", ".rope.scaling.factor", ".attention.scale", ".logit_scale", ".residual_scale"]:
        for number in (0.0, -1.0, 1e38, 1e-45):
            cases[f"{name} = {number}"] = replaced(name, scalar(F32, struct.pack("<f", number)))
    cases["not causal"] = replaced(".attention.causal", scalar(BOOL, b"\0"))
    return cases


_HYPERPARAMETERS = [
    ".block_count",
    ".context_length",
    ".embedding_length",
    ".feed_forward_length",
    ".attention.head_count",
    ".attention.layer_norm_rms_epsilon",
]


def wrong_types() -> dict[str, bytes]:
    """Keys whose values are of another type than the one they are read as."""
    text = scalar(STRING, string(b"32"))
    numbers = scalar(ARRAY, struct.pack("<IQ", U8, 2) + bytes(2))
    cases = {}
    for name in [*_HYPERPARAMETERS, "general.alignment"]:
        cases[f"{name} as text"] = replaced(name, text)
        cases[f"{name} as a double"] = replaced(name, scalar(F64, struct.pack("<d", 2.0)))
        cases[f"{name} as bytes"] = replaced(name, numbers)
    for name in ["general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre"]:
        cases[f"{name} as a number"] = replaced(name, scalar(U32, struct.pack("<I", 1)))
        cases[f"{name} as a list"] = replaced(name, numbers)
    for name in ["tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"]:
        cases[f"{name} as text"] = replaced(name, text)
        cases[f"{name} as bytes"] = replaced(name, numbers)
        cases[f"{name} as lists of lists"] = replaced(name, scalar(ARRAY, struct.pack("<IQ", ARRAY, 1) + bytes(12)))
    for kind in (13, 14, 255, 2**31, 2**32 - 1):
        cases[f"a value of type {kind}"] = replaced("general.name", scalar(kind, bytes(8)))
        cases[f"elements of type {kind}"] = replaced("general.name", scalar(ARRAY, struct.pack("<IQ", kind, 1)))
    return cases


def not_finite() -> dict[str, bytes]:
    """Numbers that are none."""
    cases = {}
    for value in ("nan", "inf", "-inf"):
        number = scalar(F32, struct.pack("<f", float(value)))
        cases[f"epsilon {value}"] = replaced(".attention.layer_norm_rms_epsilon", number)
        cases[f"frequency {value}"] = replaced(".rope.freq_base", number)
        cases[f"scale {value}"] = replaced(".attention.scale", number)
        cases[f"double {value}"] = replaced(".rope.scale", scalar(F64, struct.pack("<d", float(value))))
        cases[f"rope factor {value}"] = replaced(".rope.scaling.factor", number)
    for value in (-1.0, 2.0):
        cases[f"epsilon {value}"] = replaced(".attention.layer_norm_rms_epsilon", scalar(F32, struct.pack("<f", value)))
    scores = struct.pack(f"<IQ{vocabulary.SIZE}f", F32, vocabulary.SIZE, *[float("nan")] * vocabulary.SIZE)
    cases["scores"] = replaced("tokenizer.ggml.scores", scalar(ARRAY, scores))
    return cases


def out_of_bounds() -> dict[str, bytes]:
    """Hyperparameters beyond what the runtime has room for, or divides by."""
    cases = {}
    for name, values in {
        ".block_count": [0, 2, 513, 1000, 10**6, 2**31 - 1, 2**31, 2**32 - 1],
        ".context_length": [0, 2**31, 2**32 - 1],
        ".embedding_length": [0, 1, 63, 2**20 + 1, 2**31, 2**32 - 1],
        ".feed_forward_length": [1, 2**24 + 1, 2**32 - 1],
        ".attention.head_count": [0, 3, 2**16 + 1, 2**32 - 1],
        ".attention.head_count_kv": [3, 2**16 + 1, 2**32 - 1],
        ".attention.key_length": [0, 31, 2**16 + 1, 2**32 - 1],
        ".attention.value_length": [0, 31, 2**16 + 1, 2**32 - 1],
        ".rope.dimension_count": [31, 34, 2**31, 2**32 - 1],
        ".vocab_size": [0, 2**31, 2**32 - 1],
        ".expert_count": [1025, 2**32 - 1],
        ".expert_used_count": [1, 2**32 - 1],
        ".nextn_predict_layers": [2, 2**32 - 1],
        "general.alignment": [0, 3, 24, 2**21, 2**31, 2**32 - 1],
    }.items():
        for value in values:
            cases[f"{name} = {value}"] = replaced(name, scalar(U32, struct.pack("<I", value)))
    cases["rope scaling 'cubic'"] = replaced(".rope.scaling.type", scalar(STRING, string(b"cubic")))
    return cases


def vocabularies() -> dict[str, bytes]:
    """Vocabularies that a tokenizer cannot live with."""

    def tokens(texts: list[bytes]) -> bytes:
        body = b"".join(map(string, texts))
        return replaced("tokenizer.ggml.tokens", scalar(ARRAY, struct.pack("<IQ", STRING, len(texts)) + body))

    names = [token.encode() for token in vocabulary.TOKENS]
    return {
        "empty": tokens([]),
        "one token": tokens(names[:1]),
        "a token missing": tokens(names[:-1]),
        "a token too many": tokens([*names, b"one more"]),
        "a token twice": tokens([*names[:-1], b"a"]),
        "no model": replaced("tokenizer.ggml.model", None),
        "no tokens": replaced("tokenizer.ggml.tokens", None),
        "a model nobody knows": replaced("tokenizer.ggml.model", scalar(STRING, string(b"nonsense"))),
        "merges that are none": replaced("tokenizer.ggml.model", scalar(STRING, string(b"gpt2"))),
    }


def nothing() -> dict[str, bytes]:
    """Files that were never models."""
    return {
        "empty": b"",
        "one byte": b"G",
        "zeros": bytes(100_000),
        "a web page": b"<html><body>404 Not Found</body></html>" * 100,
        "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 100\n",
        "a zip file": b"PK\x03\x04" + bytes(1000),
        "magic alone": b"GGUF",
        "no keys": header(0, 0) + bytes(4096),
        "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(4096),
        "a key without a name": header(0, 1) + key("", U32, bytes(4)) + bytes(4096),
        "a key of 70,000 bytes": header(0, 1) + key("k" * 70_000, U32, bytes(4)) + bytes(4096),
        "a key of 60,000 bytes": header(0, 1) + key("k" * 60_000, 77, bytes(4)) + bytes(4096),
        "a key for a terminal": header(0, 1) + key("\x1b[2J\x07\r\n", 77, bytes(4)) + bytes(4096),
        "a key that is not UTF-8": header(0, 1) + string(b"\xff\xfe\x80" * 9) + struct.pack("<I", 77) + bytes(4096),
        "a key twice": header(0, 2) + key("a", U32, bytes(4)) * 2 + bytes(4096),
        "an unknown architecture": replaced("general.architecture", scalar(STRING, string(b"nonsense"))),
        "an architecture for a terminal": replaced("general.architecture", scalar(STRING, string(b"\x1b[2J\x07\r\n"))),
        "an architecture of a megabyte": replaced("general.architecture", scalar(STRING, string(b"n" * 2**20))),
        **{f"version {version}": header(0, 0, version) + bytes(4096) for version in (0, 1, 4, 2**31, 2**32 - 1)},
    }


def known_faults() -> dict[str, bytes]:
    """Files after the published faults of GGUF loaders; the rest of each class is above."""
    wrapped = writer()
    size = 2**64 - sum(len(data) for *_, data in wrapped._tensors)
    sums = [(f"t{i}", (2**61 - 8,), 0, b"") for i in range(8)]
    return {
        # A count of keys whose table, times its size, wraps to a small allocation.
        "CVE-2024-23605 key count": header(0, 2**64 // 48 + 1) + bytes(4096),
        "CVE-2024-21836 tensor count": header(2**64 // 88 + 1, 0) + bytes(4096),
        # A string whose length plus its NUL is 0.
        "CVE-2024-23496 string length": header(0, 1) + struct.pack("<Q", 2**64 - 1) + bytes(4096),
        "CVE-2024-21825 array length": header(0, 1)
        + key("a", ARRAY, struct.pack("<IQ", STRING, 2**60 + 1))
        + bytes(4096),
        "CVE-2024-21802 extents": one_tensor([2**62, 2, 2, 1]),
        # An error half way, after which what had never been set was freed.
        "CVE-2024-32878 an unknown type half way": header(0, 3)
        + key("a", STRING, string(b"x"))
        + key("b", ARRAY, struct.pack("<IQ", 13, 2))
        + bytes(4096),
        # A token whose length, as an int, is negative.
        "CVE-2025-49847 token length": replaced(
            "tokenizer.ggml.tokens", scalar(ARRAY, struct.pack("<IQQ", STRING, 1, 2**31))
        ),
        # Tensors whose sizes are each possible, and together wrap around.
        "CVE-2025-53630 sum of sizes": _with_tensors(sums),
        "a size that wraps with the others": _with_tensors([("t", (size // 4,), 0, b"")]),
        "ggml-org/llama.cpp#25821 block_count": replaced(".block_count", scalar(U32, struct.pack("<I", 100_000))),
    }


def _with_tensors(more: list[tuple]) -> bytes:
    file = writer()
    file._tensors += more
    return file.to_bytes()


CLASSES = {
    "truncated": truncated,
    "lying counts": lying_counts,
    "overflowing products": overflowing_products,
    "tensors": tensors,
    "types of tensors": types_of_tensors,
    "wrong types": wrong_types,
    "not finite": not_finite,
    "out of bounds": out_of_bounds,
    "vocabularies": vocabularies,
    "nothing": nothing,
    "known faults": known_faults,
}
