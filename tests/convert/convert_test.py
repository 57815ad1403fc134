"""What a converted model holds: the numbers of the GGUF file, in MLX's order and under MLX's names."""

from __future__ import annotations

import json
import math
import struct
from array import array
from pathlib import Path
from random import Random

import pytest
from elizainference import BundleError, InvalidArgument
from elizainference.cli._main import main
from elizainference.convert import count_values, gguf_to_mlx
from elizainference.convert._architectures import row_order
from elizainference.convert._dequantise import TYPES
from elizainference.convert._gguf import GgufFile

from tests.models import vocabulary
from tests.models.gguf_writer import F32, STRING, U32, GgufWriter
from tests.support import models


def load(directory: Path) -> dict[str, tuple[list[int], str, bytes]]:
    """{tensor: (shape, type, bytes)} of model.safetensors."""
    data = (directory / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    end = 0
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = (entry["shape"], entry["dtype"], data[8 + size + begin : 8 + size + end])
    assert 8 + size + end == len(data)
    return tensors


def original(path: Path, name: str) -> tuple[tuple[int, ...], array]:
    """A tensor of an F32 GGUF file."""
    with GgufFile(path) as gguf:
        tensor = gguf.tensors[name]
        values = array("f", gguf.bytes_of(tensor, 0, tensor.elements // tensor.shape[-1]))
        return tensor.shape, values


def rows(values: array, width: int) -> list[bytes]:
    data = values.tobytes()
    return [data[at : at + 4 * width] for at in range(0, len(data), 4 * width)]


def test_llama(tmp_path):
    source = models.text_model("tiny_llama_random")
    made = gguf_to_mlx(source, tmp_path / "m")
    assert made == tmp_path / "m"
    assert sorted(file.name for file in made.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    config = json.loads((made / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert config["vocab_size"] == vocabulary.SIZE
    assert config["eos_token_id"] == vocabulary.EOS
    assert json.loads((made / "generation_config.json").read_text()) == {"eos_token_id": [vocabulary.EOS]}
    tensors = load(made)
    for name, there in {
        "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight",
        "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "blk.0.ffn_norm.weight": "model.layers.0.post_attention_layernorm.weight",
    }.items():
        shape, values = original(source, name)
        assert tensors[there] == (list(shape), "F32", values.tobytes())


@pytest.mark.parametrize(("part", "heads"), [("q", "num_attention_heads"), ("k", "num_key_value_heads")])
def test_the_rows_of_rotated_projections(tmp_path, part, heads):
    """GGUF has a head's rows as x0 y0 x1 y1 ..., where x is the first half and y the second."""
    source = models.text_model("tiny_llama_random")
    made = gguf_to_mlx(source, tmp_path / "m")
    count = json.loads((made / "config.json").read_text())[heads]
    (_, width), values = original(source, f"blk.0.attn_{part}.weight")
    theirs = rows(values, width)
    ours = rows(array("f", load(made)[f"model.layers.0.self_attn.{part}_proj.weight"][2]), width)
    size = len(theirs) // count
    assert size * count == len(ours)
    for head in range(count):
        for i in range(size // 2):
            assert ours[head * size + i] == theirs[head * size + 2 * i]
            assert ours[head * size + size // 2 + i] == theirs[head * size + 2 * i + 1]
    assert sorted(row_order(len(theirs), count)) == list(range(len(theirs)))


def test_gemma3(tmp_path):
    source = models.text_model("tiny_gemma3_random")
    tensors = load(gguf_to_mlx(source, tmp_path / "m"))
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["model_type"] == "gemma3_text"
    assert config["query_pre_attn_scalar"] == config["head_dim"]
    assert config["sliding_window_pattern"] == 6
    # Norms are kept without the 1; nothing is permuted.
    for name, there in {
        "blk.0.attn_norm.weight": "model.layers.0.input_layernorm.weight",
        "blk.1.attn_q_norm.weight": "model.layers.1.self_attn.q_norm.weight",
        "blk.1.post_ffw_norm.weight": "model.layers.1.post_feedforward_layernorm.weight",
        "output_norm.weight": "model.norm.weight",
    }.items():
        _, values = original(source, name)
        assert list(array("f", tensors[there][2])) == [x - 1 for x in values]
    shape, values = original(source, "blk.0.attn_q.weight")
    assert tensors["model.layers.0.self_attn.q_proj.weight"] == (list(shape), "F32", values.tobytes())


def test_gemma4(tmp_path):
    source = models.text_model("tiny_gemma4_mtp")
    tensors = load(gguf_to_mlx(source, tmp_path / "m"))
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["model_type"] == "gemma4_text"
    assert config["layer_types"] == ["sliding_attention", "full_attention"]
    assert config["rope_parameters"]["full_attention"]["partial_rotary_factor"] == 1.0
    assert config["final_logit_softcapping"] is None
    assert not config["attention_k_eq_v"] and not config["use_double_wide_mlp"]
    # Plain norms, a scalar without a suffix, and no rope_freqs, which the config says.
    assert set(array("f", tensors["model.layers.0.input_layernorm.weight"][2])) == {1.0}
    assert tensors["model.layers.1.layer_scalar"][0] == [1]
    assert not any("rope" in name for name in tensors)


@pytest.mark.parametrize(("dtype", "size"), [("f16", 2), ("bf16", 2), ("f32", 4)])
def test_types_of_weights(tmp_path, dtype, size):
    source = models.text_model("tiny_llama_random")
    _, values = original(source, "blk.0.ffn_up.weight")
    done: list[int] = []
    tensors = load(gguf_to_mlx(source, tmp_path / "m", dtype=dtype, progress=done.append))
    _, kind, data = tensors["model.layers.0.mlp.up_proj.weight"]
    assert (kind.lower(), len(data)) == (dtype, size * len(values))
    made = TYPES[{"f32": 0, "f16": 1, "bf16": 30}[dtype]].values(data)
    digits = {"f32": 24, "f16": 11, "bf16": 8}[dtype]
    assert all(math.isclose(a, b, rel_tol=2.0**-digits, abs_tol=1e-7) for a, b in zip(made, values, strict=True))
    assert sum(done) == count_values(source)


# Of blocks of random bytes: the first value, one behind the middle, the last, and the sum of all without signs, as the
# gguf package (0.19) has them.
_BLOCKS = {
    "Q4_0": (0.41711426, 0.4866333, -0.55615234, 8.620361328125),
    "Q4_1": (0.23272705, 0.46655273, 0.46655273, 18.2032470703125),
    "Q5_0": (-0.8580322, -0.5460205, 0.93603516, 16.9266357421875),
    "Q5_1": (0.53796387, 1.1312256, 1.1312256, 34.880859375),
    "Q8_0": (0.59051514, 2.0996094, 1.3778687, 116.265869140625),
    "Q4_K": (25.661133, 23.142822, 2.4422607, 4606.8687744140625),
    "Q5_K": (10.394043, 67.54199, 30.509521, 6474.306884765625),
    "Q6_K": (73.91968, -46.367798, -9.407959, 17360.439514160156),
}


@pytest.mark.parametrize(("number", "kind"), TYPES.items())
def test_quantised_blocks(number, kind):
    if kind.block == 1:
        assert kind.name in ("F32", "F16", "BF16")  # test_types_of_weights has them
        return
    data = bytearray(Random(number).randbytes(kind.size))
    for at in {"Q6_K": [208]}.get(kind.name, [0, 2] if kind.name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else [0]):
        data[at + 1] = 0x2C  # scales of about 1/16
    values = kind.values(bytes(data))
    assert len(values) == kind.block
    found = (values[0], values[kind.block // 2 + 1], values[-1], math.fsum(map(abs, values)))
    assert found == pytest.approx(_BLOCKS[kind.name], rel=1e-6)
    # A block's values do not depend on its neighbours.
    assert kind.values(bytes(data) * 3) == values * 3


def _llama3(factor: float) -> GgufWriter:
    """A llama whose frequencies are stretched as Llama 3.1's; a head of 64."""
    file = GgufWriter("llama")
    for key, value in {
        ".context_length": 131072,
        ".embedding_length": 64,
        ".block_count": 1,
        ".feed_forward_length": 32,
        ".attention.head_count": 1,
    }.items():
        file.add(key, U32, value)
    file.add(".attention.layer_norm_rms_epsilon", F32, 1e-5)
    file.add(".rope.freq_base", F32, 500000.0)
    vocabulary.add_to(file)
    factors = []
    for i in range(32):
        wavelength = 2 * math.pi * 500000.0 ** (i / 32)
        smooth = min(max((8192 / wavelength - 1) / 3, 0), 1)
        factors.append(1 / ((1 - smooth) / factor + smooth))
    file.add_tensor("rope_freqs.weight", (32,), factors)
    file.add_tensor("token_embd.weight", (vocabulary.SIZE, 64))
    file.add_tensor("output_norm.weight", (64,), [1.0] * 64)
    return file


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_frequencies(tmp_path, factor):
    _llama3(factor).write(tmp_path / "m.gguf")
    made = gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m")
    assert json.loads((made / "config.json").read_text())["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def test_frequencies_of_nobody(tmp_path):
    _llama3(5.0).write(tmp_path / "m.gguf")
    with pytest.raises(BundleError, match="neither Llama 3.1's nor Llama 3.2's"):
        gguf_to_mlx(tmp_path / "m.gguf", tmp_path / "m")


def test_linear_scaling_and_others(tmp_path):
    for kind, message in (("linear", None), ("yarn", "'yarn'; 'linear' is known")):
        file = _llama3(8.0)
        file._tensors = file._tensors[1:]  # without the frequencies
        file.add(".rope.scaling.type", STRING, kind)
        file.add(".rope.scaling.factor", F32, 4.0)
        file.write(tmp_path / f"{kind}.gguf")
        if message:
            with pytest.raises(BundleError, match=message):
                gguf_to_mlx(tmp_path / f"{kind}.gguf", tmp_path / kind)
        else:
            made = gguf_to_mlx(tmp_path / f"{kind}.gguf", tmp_path / kind)
            assert json.loads((made / "config.json").read_text())["rope_scaling"] == {
                "rope_type": "linear",
                "factor": 4.0,
            }


def test_arguments(tmp_path):
    source = models.text_model("tiny_llama_random")
    with pytest.raises(InvalidArgument, match="dtype is 'q4'; it must be one of f32, f16, bf16"):
        gguf_to_mlx(source, tmp_path / "m", dtype="q4")
    (tmp_path / "there").mkdir()
    with pytest.raises(BundleError, match="there' exists; give a directory that does not"):
        gguf_to_mlx(source, tmp_path / "there")
    assert [file.name for file in tmp_path.iterdir()] == ["there"]


def test_an_interrupted_conversion_leaves_nothing(tmp_path):
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gguf_to_mlx(models.text_model("tiny_llama_random"), tmp_path / "m", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path, capfd):
    source = str(models.text_model("tiny_llama_random"))
    assert main(["bundle", "convert", source, str(tmp_path / "b/text/m"), "--to", "mlx", "--dtype", "bf16"]) == 0
    assert (tmp_path / "b/text/m/config.json").exists()
    assert "MB" in capfd.readouterr().err
    assert main(["bundle", "convert", source, str(tmp_path / "b/text/m")]) == 1
    assert "exists; give a directory that does not" in capfd.readouterr().err
