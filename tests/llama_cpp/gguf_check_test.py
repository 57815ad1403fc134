"""Files that are no models: each is an error that says what is wrong, from the check and from a load.

What the check lets through is given to llama.cpp as well: then a mutation is harmless, or an error there. Nothing may
end the process or write to its output, so everything runs in a child.
"""

from __future__ import annotations

import functools
import os
import random
import struct

import _llama_cpp_testing as llama
import pytest
from elizainference.cli import _headers

from tests.models import make_tiny_gguf, vocabulary
from tests.models.gguf_writer import ARRAY, BOOL, F32, STRING, U32, GgufWriter
from tests.support import models
from tests.support.isolated import isolated

U16, I32, U64 = 2, 5, 10


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def header(tensors: int, keys: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def key(name: str, kind: int, value: bytes) -> bytes:
    return string(name.encode()) + struct.pack("<I", kind) + value


def array(name: str, kind: int, count: int, elements: bytes = b"") -> bytes:
    return key(name, ARRAY, struct.pack("<IQ", kind, count) + elements)


def tensor(name: bytes, shape: list[int], kind: int = 0, offset: int = 0, dimensions: int | None = None) -> bytes:
    sizes = struct.pack(f"<{len(shape)}q", *shape)
    count = len(shape) if dimensions is None else dimensions
    return string(name) + struct.pack("<I", count) + sizes + struct.pack("<IQ", kind, offset)


ARCHITECTURE = key("general.architecture", STRING, string(b"llama"))
PADDING = bytes(4096)


@functools.cache
def good() -> bytes:
    return make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, False, 1, 256, 1).to_bytes()


def with_key(name: str, kind: int, value) -> bytes:
    """A good model in which a key has another value."""
    writer = make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, False, 1, 256, 1)
    full = "llama" + name if name.startswith(".") else name
    writer._pairs = [pair for pair in writer._pairs if not pair.startswith(string(full.encode()))]
    writer.add(name, kind, value)
    return writer.to_bytes()


def without_key(name: str) -> bytes:
    writer = make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, False, 1, 256, 1)
    writer._pairs = [pair for pair in writer._pairs if not pair.startswith(string(name.encode()))]
    return writer.to_bytes()


def with_tokens(tokens: list[str]) -> bytes:
    writer = make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, False, 1, 256, 1)
    tokens_key = string(b"tokenizer.ggml.tokens")
    writer._pairs = [pair for pair in writer._pairs if not pair.startswith(tokens_key)]
    writer.add_array("tokenizer.ggml.tokens", STRING, tokens)
    return writer.to_bytes()


HUGE = 2**62

# What the check refuses: {name: (bytes, what the message says)}.
REFUSED = {
    "empty": (b"", "is empty"),
    "one byte": (b"G", "is no GGUF file"),
    "text": (b"<html>404 Not Found</html>" * 9, "is no GGUF file"),
    "zeros": (bytes(1000), "is no GGUF file"),
    "magic alone": (b"GGUF", "ends in the middle of its header"),
    "version 1": (header(0, 0, 1) + PADDING, "is GGUF version 1"),
    "version 4": (header(0, 0, 4) + PADDING, "is GGUF version 4"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "too many tensors": (header(HUGE, 0) + PADDING, "claims"),
    "too many keys": (header(0, HUGE) + PADDING, "claims"),
    "negative counts": (header(2**64 - 1, 2**64 - 1) + PADDING, "claims"),
    "key without a name": (header(0, 1) + key("", U32, bytes(4)) + PADDING, "without a name"),
    "endless key": (header(0, 1) + struct.pack("<Q", HUGE) + PADDING, "a key at byte 24 claims a length"),
    "key beyond the bound": (header(0, 1) + struct.pack("<Q", 70000) + bytes(80000), "claims a length of 70000"),
    "unknown type": (header(0, 1) + key("a", 13, bytes(8)) + PADDING, "unknown type 13"),
    "endless string": (header(0, 1) + key("a", STRING, struct.pack("<Q", HUGE)) + PADDING, "claims a length"),
    "endless array": (header(0, 1) + array("a", U32, HUGE) + PADDING, "more than the rest of the file"),
    "array that overflows": (header(0, 1) + array("a", U64, 2**61 + 1) + PADDING, "more than the rest of the file"),
    "array of strings that ends": (header(0, 1) + array("a", STRING, 100, string(b"x")), "more than the rest"),
    "array of arrays": (header(0, 1) + array("a", ARRAY, 1, bytes(12)) + PADDING, "array of arrays"),
    "architecture is a number": (header(0, 1) + key("general.architecture", U32, bytes(4)) + PADDING, "of type uint32"),
    "alignment is a string": (
        header(0, 1) + key("general.alignment", STRING, string(b"32")) + PADDING,
        "of type string",
    ),
    "alignment 0": (header(0, 1) + key("general.alignment", U32, bytes(4)) + PADDING, "power of two"),
    "alignment 3": (header(0, 1) + key("general.alignment", U32, struct.pack("<I", 3)) + PADDING, "power of two"),
    "huge alignment": (
        header(0, 1) + key("general.alignment", U32, struct.pack("<I", 2**31)) + PADDING,
        "power of two",
    ),
    "no tokens": (with_tokens([]), "no usable vocabulary"),
    "a token twice": (with_tokens(vocabulary.TOKENS[:-1] + ["a"]), "occurs twice"),
    "tokens are numbers": (
        header(0, 1) + array("tokenizer.ggml.tokens", U32, 2, bytes(8)) + PADDING,
        "no usable vocabulary",
    ),
    "tokens are one string": (with_key("tokenizer.ggml.tokens", STRING, "a"), "of type string instead of array"),
    "tokenizer model is a number": (with_key("tokenizer.ggml.model", U32, 1), "of type uint32 instead of string"),
    "no layers": (with_key(".block_count", U32, 0), "llama.block_count = 0"),
    "more layers than llama.cpp has room for": (with_key(".block_count", U32, 513), "llama.block_count = 513"),
    "a layer count that wraps": (with_key(".block_count", U32, 2**32 - 1), "llama.block_count"),
    "no context": (with_key(".context_length", U32, 0), "llama.context_length = 0"),
    "no width": (with_key(".embedding_length", U32, 0), "llama.embedding_length = 0"),
    "heads without values": (with_key(".attention.key_length", U32, 0), "attention.key_length = 0"),
    "too many experts": (with_key(".expert_count", U32, 1025), "expert_count = 1025"),
    "more experts used than there are": (with_key(".expert_used_count", U32, 2), "expert_used_count = 2"),
    "more MTP layers than layers": (with_key(".nextn_predict_layers", U32, 2), "nextn_predict_layers = 2"),
    "unknown rope scaling": (with_key(".rope.scaling.type", STRING, "cubic"), "rope scaling 'cubic'"),
    "negative epsilon": (with_key(".attention.layer_norm_rms_epsilon", F32, -1.0), "epsilon = -1,"),
    "epsilon is no number": (with_key(".attention.layer_norm_rms_epsilon", F32, float("nan")), "epsilon = "),
    "odd rotation": (with_key(".rope.dimension_count", U32, 31), "rope.dimension_count = 31"),
    "more rotation than head": (with_key(".rope.dimension_count", U32, 34), "rope.dimension_count = 34"),
    "tensor without dimensions": (header(1, 1) + ARCHITECTURE + tensor(b"t", []) + PADDING, "0 dimensions"),
    "tensor of five dimensions": (header(1, 1) + ARCHITECTURE + tensor(b"t", [1] * 5) + PADDING, "5 dimensions"),
    "tensor of many dimensions": (
        header(1, 1) + ARCHITECTURE + tensor(b"t", [1], dimensions=2**32 - 1) + PADDING,
        "dimensions",
    ),
    "tensor with a negative extent": (header(1, 1) + ARCHITECTURE + tensor(b"t", [-32]) + PADDING, "extent of -32"),
    "tensor with no extent": (header(1, 1) + ARCHITECTURE + tensor(b"t", [0]) + PADDING, "extent of 0"),
    "tensor whose size overflows": (
        header(1, 1) + ARCHITECTURE + tensor(b"t", [2**31, 2**31, 2**31, 2**31]) + PADDING,
        "'t'",
    ),
    "tensor of an unknown type": (header(1, 1) + ARCHITECTURE + tensor(b"t", [32], 43) + PADDING, "no such type"),
    "tensor of a removed type": (header(1, 1) + ARCHITECTURE + tensor(b"t", [32], 4) + PADDING, "no such type"),
    "tensor with half a block": (
        header(1, 1) + ARCHITECTURE + tensor(b"t", [16], 8) + PADDING,
        "multiple of its block",
    ),
    "tensor that is not aligned": (
        header(1, 1) + ARCHITECTURE + tensor(b"t", [4], offset=8) + PADDING,
        "not a multiple of 32",
    ),
    "tensor beyond the end": (header(1, 1) + ARCHITECTURE + tensor(b"t", [4], offset=2**20) + PADDING, "too short"),
    "tensor whose end overflows": (
        header(1, 1) + ARCHITECTURE + tensor(b"t", [4], offset=2**64 - 32) + PADDING,
        "too short",
    ),
    "tensor with a long name": (header(1, 1) + ARCHITECTURE + tensor(b"t" * 64, [4]) + PADDING, "the name of a tensor"),
    "part of a set, alone": (
        header(0, 1) + key("split.count", U16, struct.pack("<H", 3)) + PADDING,
        "part 1 of 3",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    data, what = REFUSED[name]

    @isolated
    def check():
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        for use in [llama.check_gguf, llama.acquire_model, llama.acquire_vocabulary]:
            with pytest.raises(RuntimeError) as refused:
                use(str(path))
            message = str(refused.value)
            assert message.startswith(f"-3: the model file {path} "), message
            assert what in message, message
            assert "Download the model again" in message or "beside all the others" in message, message

    check()


# What the check knows nothing of, and llama.cpp refuses: {name: bytes}.
REFUSED_BY_LLAMA_CPP = {
    "no keys": header(0, 0) + PADDING,
    "unknown architecture": header(0, 1) + key("general.architecture", STRING, string(b"nonsense")) + PADDING,
    "no vocabulary": without_key("tokenizer.ggml.tokens"),
    "unknown vocabulary": with_key("tokenizer.ggml.model", STRING, "nonsense"),
    "too few scores": with_tokens([*vocabulary.TOKENS, "one more"]),
    "no layer count": without_key("llama.block_count"),
    "layers without tensors": with_key(".block_count", U32, 2),
    "another width": with_key(".embedding_length", U32, 32),
    "context length is a float": with_key(".context_length", F32, 256.0),
    "group count without experts": with_key(".expert_used_count", STRING, "x"),
}


@pytest.mark.parametrize("name", REFUSED_BY_LLAMA_CPP)
def test_refused_by_llama_cpp(name, tmp_path):
    @isolated
    def check():
        path = tmp_path / "model.gguf"
        path.write_bytes(REFUSED_BY_LLAMA_CPP[name])
        with pytest.raises(
            RuntimeError, match="-3: llama.cpp cannot load the model file .*model.gguf \\(.+\\)"
        ) as refused:
            llama.acquire_model(str(path))
        assert "no reason given" not in str(refused.value)

    check()


def test_no_end_where_each_text_needs_one(tmp_path):
    """llama.cpp asserts on it when a text is tokenized."""

    @isolated
    def check():
        writer = make_tiny_gguf.make("llama", "walk", vocabulary.ALPHABET, False, 1, 256, 1)
        writer._pairs = [pair for pair in writer._pairs if b"eos_token_id" not in pair]
        writer.add("tokenizer.ggml.eos_token_id", U32, 2**32 - 1)
        writer.add("tokenizer.ggml.add_eos_token", BOOL, True)
        path = tmp_path / "model.gguf"
        path.write_bytes(writer.to_bytes())
        llama.acquire_model(str(path))  # the default id, 2, is in the vocabulary
        tokens = string(b"tokenizer.ggml.tokens")
        writer._pairs = [pair for pair in writer._pairs if not pair.startswith(tokens)]
        writer.add_array("tokenizer.ggml.tokens", STRING, ["<unk>", "<s>"])
        path.write_bytes(writer.to_bytes())
        with pytest.raises(RuntimeError, match="a token at the end of each text, but its vocabulary has none"):
            llama.acquire_vocabulary(str(path))

    check()


def test_a_file_that_was_cut_off(tmp_path):
    """As a download that stopped."""

    @isolated
    def check():
        data = good()
        path = tmp_path / "model.gguf"
        for size in [*range(0, 2000, 37), *range(2000, len(data), 4999), len(data) - 1]:
            path.write_bytes(data[:size])
            with pytest.raises(RuntimeError, match="-3: the model file"):
                llama.check_gguf(str(path))
        path.write_bytes(data)
        assert llama.check_gguf(str(path))[0] == "llama"

    check()


def test_not_a_file(tmp_path):
    with pytest.raises(RuntimeError, match="is a directory"):
        llama.check_gguf(str(tmp_path))
    with pytest.raises(RuntimeError, match="is not a regular file"):
        llama.check_gguf("/dev/null")
    with pytest.raises(RuntimeError, match="cannot be opened: No such file"):
        llama.check_gguf(str(tmp_path / "nothing"))


@pytest.mark.parametrize("seed", range(int(os.environ.get("FUZZ_SEEDS", 4))))
def test_flipped_bytes_end_in_an_error_or_a_model(seed, tmp_path):
    """Every header byte is wrong once in a while; the loader must survive what the check lets through."""

    @isolated
    def check():
        data = good()
        random_numbers = random.Random(seed)
        path = tmp_path / "model.gguf"
        # The keys and the tensor table, and not only the long lists of the vocabulary between them.
        tensors = data.index(b"token_embd.weight") - 8
        regions = [range(0, 1500), range(tensors - 400, tensors + 900)]
        for _ in range(150):
            mutated = bytearray(data)
            for _ in range(random_numbers.choice([1, 1, 1, 2, 8])):
                position = random_numbers.choice(random_numbers.choice(regions))
                mutated[position] = random_numbers.choice([0, 1, 0x7F, 0x80, 0xFF, random_numbers.randrange(256)])
            path.write_bytes(mutated)
            try:
                session = llama.Session(str(path), max_tokens=2, context_size=64)
                session.prefill([1, 5, 6])
                session.generate()
            except RuntimeError as error:
                assert str(error)[:3] in ("-2:", "-3:", "-4:", "-5:"), error

    check()


def test_what_the_header_says():
    architecture, tensor_bytes, fingerprint, integers = llama.check_gguf(str(models.text_model("tiny_gemma3_cycle")))
    assert architecture == "gemma3"
    assert tensor_bytes > 400_000
    assert integers["block_count"] == [2]
    assert integers["attention.sliding_window"] == [32]
    # Same bytes, same fingerprint; another model, another one.
    assert llama.check_gguf(str(models.text_model("tiny_gemma3_cycle")))[2] == fingerprint
    assert llama.check_gguf(str(models.text_model("tiny_gemma3_random")))[2] != fingerprint


def test_split_sets(tmp_path):
    """The parts are found by name, and each is checked."""

    def part(number: int, count: int) -> bytes:
        writer = GgufWriter("llama")
        pairs = [key("split.no", U16, struct.pack("<H", number)), key("split.count", U16, struct.pack("<H", count))]
        writer._pairs += pairs
        writer.add_tensor(f"t{number}", (32,), [0.0] * 32)
        return writer.to_bytes()

    paths = [tmp_path / f"m-{number + 1:05}-of-00003.gguf" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(part(number, 3))
    _, tensor_bytes, fingerprint, _ = llama.check_gguf(str(paths[0]))
    assert tensor_bytes == 3 * 128
    with pytest.raises(RuntimeError, match="part 2 of 3: open the first part"):
        llama.check_gguf(str(paths[1]))

    paths[2].write_bytes(part(2, 3) + bytes(32))
    assert llama.check_gguf(str(paths[0]))[2] != fingerprint
    paths[2].write_bytes(b"")
    with pytest.raises(RuntimeError, match="00003-of-00003.gguf is empty"):
        llama.check_gguf(str(paths[0]))
    paths[2].unlink()
    with pytest.raises(RuntimeError, match="00003-of-00003.gguf cannot be opened"):
        llama.check_gguf(str(paths[0]))


@pytest.mark.parametrize("elements", [1, 31, 32, 64, 96, 128, 256, 1024])
def test_the_table_of_types_is_ggmls(elements):
    for kind in range(60):
        assert llama.row_bytes(kind, elements) == llama.ggml_row_bytes(kind, elements), f"type {kind}"


def test_eliza_bundle_inspect_has_a_name_for_each_type():
    assert set(_headers._GGML_TYPES) == {kind for kind in range(60) if llama.row_bytes(kind, 256) is not None}
