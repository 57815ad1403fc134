"""What MLX is told about this machine: how much memory there is, what to keep, what not to compile."""

from __future__ import annotations

import json
import math
import shutil
import struct
import sys

import _mlx_session_testing

from tests.mlx.session_test import PROMPT, Session, fails, open_session
from tests.support.isolated import isolated
from tests.support.waiting import eventually, threads_of

SMALL = 10_000  # bytes: more than a model has without its weights


# The first, since MLX cannot be used on both sides of a fork.
@isolated
def test_nothing_is_compiled_on_the_cpu():
    """It would be C++ in a folder that everybody may write to."""
    if shutil.which("g++"):  # without one, MLX compiles nothing anyway
        assert _mlx_session_testing.compiles()
    open_session("llama_f32").close()
    assert not _mlx_session_testing.compiles()


def test_a_context_beyond_memory_is_an_error_before_anything_is_loaded():
    open_session("gemma3_q4").close()  # what MLX starts once in a process
    before = _mlx_session_testing.active_memory()
    _mlx_session_testing.reset_peak_memory()
    message = fails(-5, lambda: open_session("llama_f32", context_size=2_000_000_000))
    assert "context_size is 2000000000 tokens, which needs about" in message
    assert "of memory are available besides the model's weights; about" in message
    assert _mlx_session_testing.peak_memory() < before + SMALL
    with open_session("llama_f32"):
        assert _mlx_session_testing.peak_memory() > before + SMALL
        # Of a model that is loaded already.
        message = fails(-5, lambda: open_session("llama_f32", context_size=2_000_000_000))
        assert "of memory are available; about" in message


def test_weights_beyond_memory_are_an_error(tmp_path):
    """A terabyte of nothing: reading it would end the process."""
    hidden, vocabulary = 1 << 14, 1 << 24
    config = {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": hidden,
        "vocab_size": vocabulary,
        "num_attention_heads": 64,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": [vocabulary, hidden], "model.norm.weight": [hidden]}
    shapes |= {f"model.layers.0.{norm}_layernorm.weight": [hidden] for norm in ("input", "post_attention")}
    shapes |= {f"model.layers.0.self_attn.{part}_proj.weight": [hidden, hidden] for part in "qkvo"}
    shapes |= {f"model.layers.0.mlp.{part}_proj.weight": [hidden, hidden] for part in ("gate", "up", "down")}
    header, offset = {}, 0
    for name, shape in shapes.items():
        end = offset + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    message = fails(-5, lambda: Session(str(tmp_path), context_size=64))
    assert f"the model {tmp_path} needs about 10" in message
    assert "for its weights and a small context, where" in message


def test_freed_buffers_are_kept_for_the_next_step_within_a_limit():
    with open_session("llama_f32"):
        assert _mlx_session_testing.cache_limit() == 256 << 20


def test_memory_comes_back():
    open_session("gemma4_f32").close()  # what MLX starts once in a process
    before = _mlx_session_testing.active_memory()
    linux = sys.platform == "linux"
    threads = threads_of() if linux else 0
    for _ in range(10):
        with open_session("gemma4_f32", max_tokens=2) as session:
            session.prefill(PROMPT)
            session.generate()
            assert _mlx_session_testing.active_memory() > before
    assert _mlx_session_testing.active_memory() <= before
    assert _mlx_session_testing.cached_memory() == 0
    if linux:
        # One that was joined has yet to leave the kernel's list.
        assert eventually(lambda: threads_of() <= threads), (threads_of(), threads)
