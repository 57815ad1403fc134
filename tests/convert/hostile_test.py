"""GGUF files from strangers: an error that names the file and what is wrong, and nothing left behind."""

from __future__ import annotations

import struct

import pytest
from elizainference import BundleError
from elizainference.convert import gguf_to_mlx
from elizainference.convert._gguf import GgufFile

from tests.models import vocabulary
from tests.models.gguf_writer import BOOL, F32, STRING, U32, GgufWriter
from tests.support import models


def refused(tmp_path, data: bytes) -> str:
    """The message."""
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(BundleError) as caught:
        gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m")
    assert [file.name for file in tmp_path.iterdir()] == ["m.gguf"]
    assert "m.gguf" in str(caught.value)
    return str(caught.value)


def small(architecture: str = "llama", **changes) -> GgufWriter:
    """A model without layers, which is converted when nothing is changed."""
    values = {"context_length": 64, "embedding_length": 8, "block_count": 1, "feed_forward_length": 8}
    file = GgufWriter(architecture)
    for key, value in (values | {"attention.head_count": 2} | changes).items():
        if value is not None:
            file.add("." + key, U32, value)
    file.add(".attention.layer_norm_rms_epsilon", F32, 1e-5)
    vocabulary.add_to(file)
    file.add_tensor("token_embd.weight", (vocabulary.SIZE, 8))
    file.add_tensor("output_norm.weight", (8,), [1.0] * 8)
    return file


def test_the_small_one_is_right(tmp_path):
    small().write(tmp_path / "m.gguf")
    assert gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m").is_dir()


@pytest.mark.parametrize("data", [b"", b"GGUF", b"x" * 100, b"GGUF" + b"\0" * 100, b"GGUF" + b"\xff" * 100])
def test_no_gguf(tmp_path, data):
    refused(tmp_path, data)


def test_truncated_at_any_place(tmp_path):
    data = models.text_model("tiny_gemma3_random").read_bytes()
    for end in (*range(0, 400, 7), *range(400, len(data), len(data) // 40), len(data) - 1):
        refused(tmp_path, data[:end])


def test_counts_that_cannot_be(tmp_path):
    data = small().to_bytes()
    for at in (8, 16):  # of tensors, of keys
        changed = data[:at] + struct.pack("<Q", 2**62) + data[at + 8 :]
        assert "which cannot be" in refused(tmp_path, changed)
    changed = data[:24] + struct.pack("<Q", 2**63) + data[32:]  # the first key's length
    assert "cut off" in refused(tmp_path, changed)
    assert "version 4" in refused(tmp_path, data[:4] + struct.pack("<I", 4) + data[8:])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_count": 0}, "block_count is 0; it must be from 1 to 4096"),
        ({"block_count": 2**31}, "block_count is 2147483648"),
        ({"embedding_length": None}, "has no llama.embedding_length"),
        ({"attention.head_count": 0}, "attention.head_count is 0"),
        ({"feed_forward_length": 0}, "llama.feed_forward_length is 0, which cannot be"),
        ({"rope.dimension_count": 2}, "rotates a part of each head only"),
    ],
)
def test_values_that_cannot_be(tmp_path, changes, message):
    assert message in refused(tmp_path, small(**changes).to_bytes())


def test_an_unknown_architecture_lists_the_known(tmp_path):
    assert "'mamba', which cannot be converted; known: llama, gemma3, gemma4" in refused(
        tmp_path, small("mamba").to_bytes()
    )


@pytest.mark.parametrize(
    "name", ["blk.7.attn_q.weight", "blk.0.ffn_gate_exps.weight", "../../x", "v.patch_embd.weight"]
)
def test_an_unknown_tensor(tmp_path, name):
    file = small()
    file.add_tensor(name, (8, 8))
    assert f"has a tensor {name}, which llama models have not" in refused(tmp_path, file.to_bytes())


def test_two_tensors_of_one_name(tmp_path):
    file = small()
    file.add_tensor("output_norm.weight", (8,))
    assert "two tensors output_norm.weight" in refused(tmp_path, file.to_bytes())


def test_heads_that_do_not_divide(tmp_path):
    file = small()
    file.add_tensor("blk.0.attn_q.weight", (6, 8))
    assert "has 6 rows for 2 heads" in refused(tmp_path, file.to_bytes())


@pytest.mark.parametrize(
    ("key", "kind", "value", "message"),
    [
        ("tokenizer.ggml.model", STRING, "bert", "'bert'; known are 'gpt2', 'llama' and 'gemma4'"),
        ("tokenizer.ggml.model", STRING, "gpt2", "tokenizer.ggml.pre is 'default'; known are gpt-2"),
        ("tokenizer.ggml.bos_token_id", U32, 99999, "bos_token_id is 99999, and it has 362 tokens"),
        ("tokenizer.ggml.add_bos_token", U32, 7, "add_bos_token is '7', which cannot be"),
    ],
)
def test_vocabularies_that_cannot_be(tmp_path, key, kind, value, message):
    file = small()
    file.add(key, kind, value)  # the last one counts
    assert message in refused(tmp_path, file.to_bytes())


def test_tables_that_do_not_fit(tmp_path):
    for key, kind, values, message in (
        ("tokenizer.ggml.tokens", STRING, ["a"], "do not fit each other"),
        ("tokenizer.ggml.tokens", STRING, ["a"] * vocabulary.SIZE, "have the same text"),
        ("tokenizer.ggml.scores", F32, [1.0], "scores do not fit"),
        ("tokenizer.ggml.tokens", BOOL, [True], "do not fit each other"),
    ):
        file = small()
        file.add_array(key, kind, values)
        assert message in refused(tmp_path, file.to_bytes())


def test_an_unknown_type_of_tensor_lists_the_known(tmp_path):
    data = bytearray(small().to_bytes())
    at = data.index(b"output_norm.weight") + len(b"output_norm.weight") + 4 + 8
    data[at : at + 4] = struct.pack("<I", 16)
    assert "type 16, which cannot be converted; known are F32, F16, Q4_0" in refused(tmp_path, bytes(data))


def test_a_file_is_closed(tmp_path):
    small().write(tmp_path / "m.gguf")
    with GgufFile(tmp_path / "m.gguf") as gguf:
        tensor = gguf.tensors["output_norm.weight"]
    with pytest.raises(ValueError, match="closed"):
        gguf.bytes_of(tensor, 0, 1)
