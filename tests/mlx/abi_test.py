"""The backend through the C ABI: what it answers to a selection, and a stream from text to text."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.models import make_tiny_mlx
from tests.support import abi, models
from tests.support.isolated import isolated
from tests.support.runfile import runfile

LIBRARY = abi.Library(
    runfile(f"elizainference_gates_on/libelizainference.{'dylib' if sys.platform == 'darwin' else 'so'}")
)


def bundle(name: str) -> Path:
    """The bundle of //tests/models:tiny_mlx_NAME."""
    return runfile(f"tests/models/tiny_mlx_{name}_bundle")


def report(directory: Path) -> tuple[dict, dict]:
    """The selection report, and MLX's row of it."""
    with abi.Context(directory, LIBRARY) as context:
        result = context.report()
    (row,) = (row for row in result["backends"] if row["name"] == "mlx-coreml")
    return result, row


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "cpu")
    monkeypatch.delenv("ELIZA_LLM_BACKEND", raising=False)


@pytest.mark.parametrize("name", ["gemma3_vision", "gemma4_wide", "llama_q8"])
def test_text_to_text(name):
    with abi.Context(bundle(name), LIBRARY) as context, context.open(max_tokens=24, context_size=128) as stream:
        prompt = context.tokenize("the end of it")
        assert prompt[0] == 1
        assert context.detokenize(prompt, remove_special=True) == "the end of it"
        stream.prefill(prompt)
        steps = stream.steps()
        tokens = [token for step in steps for token in step.tokens]
        assert 0 < len(tokens) <= 24
        assert all(len(step.tokens) <= 1 for step in steps)  # each as soon as it is there
        assert "".join(step.text for step in steps) == context.detokenize(tokens)
        assert stream.stats()["backend"] == "mlx-coreml"
        assert stream.stats()["device"] == "cpu"


def test_a_forked_process_is_told():
    with abi.Context(bundle("llama_f32"), LIBRARY) as context, context.open(max_tokens=1, context_size=64):
        pass

    @isolated
    def child():
        with abi.Context(bundle("llama_f32"), LIBRARY) as context, pytest.raises(abi.Error, match="forked from"):
            context.open(max_tokens=1, context_size=64)

    child()


def test_the_cpu_is_chosen_where_there_is_nothing_else():
    result, row = report(bundle("llama_f32"))
    assert result["chosen"] == "mlx-coreml"
    assert (row["available"], row["can_serve"], row["rank"], row["chosen"]) == (True, True, -1, True)


def test_the_cpu_never_goes_before_a_gguf(tmp_path):
    shutil.copytree(bundle("llama_f32") / "text", tmp_path / "text" / "mlx")
    shutil.copy(models.text_model("tiny_llama_cycle"), tmp_path / "text")
    result, row = report(tmp_path)
    assert result["chosen"] == "llama.cpp"
    assert (row["available"], row["can_serve"], row["rank"]) == (True, True, -1)


@pytest.mark.skipif(sys.platform == "darwin", reason="has Metal")
@pytest.mark.parametrize("device", ["", "auto", "metal", "METAL"])
def test_no_metal_here(device, monkeypatch):
    monkeypatch.setenv("ELIZA_MLX_DEVICE", device)
    _, row = report(bundle("llama_f32"))
    assert (row["available"], row["can_serve"], row["rank"]) == (False, True, None)
    assert (
        row["reason"]
        == "there is no Metal device on this host; ELIZA_MLX_DEVICE=cpu runs MLX on the CPU, slowly, for tests"
    )


def test_another_value_is_not_taken_for_auto(monkeypatch):
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "gpu0")
    _, row = report(bundle("llama_f32"))
    assert row["available"] is False
    assert "ELIZA_MLX_DEVICE is 'gpu0': it takes auto, metal or cpu" in row["reason"]


def test_a_model_that_does_not_run_here_is_not_served(tmp_path):
    shutil.copytree(bundle("llama_f32"), tmp_path / "bundle")
    config = tmp_path / "bundle" / "text" / "config.json"
    text = config.read_text().replace('"llama"', '"qwen3"', 1)
    config.unlink()
    config.write_text(text)
    _, row = report(tmp_path / "bundle")
    assert row["can_serve"] is False
    assert 'model_type is "qwen3"; it must be one of gemma3_text, gemma3, gemma4_text, gemma4, llama' in row["reason"]
    # A GGUF beside it serves.
    shutil.copy(models.text_model("tiny_llama_cycle"), tmp_path / "bundle" / "text")
    assert report(tmp_path / "bundle")[0]["chosen"] == "llama.cpp"


def test_what_it_cannot_honour_goes_elsewhere_or_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "mlx-coreml")
    with abi.Context(bundle("llama_f32"), LIBRARY) as context:
        for fields, what in [
            ({"gbnf_grammar": 'root ::= "a"'}, "MLX streams have no gbnf_grammar"),
            ({"draft_max": 4, "mtp_drafter_path": "mtp/x.gguf"}, "MLX streams have no drafter"),
        ]:
            with pytest.raises(abi.Error) as error:
                context.open(**fields)
            assert "mlx-coreml cannot do what this stream asks for: " + what in error.value.message
    monkeypatch.delenv("ELIZA_LLM_BACKEND")
    shutil.copytree(bundle("llama_f32") / "text", tmp_path / "text" / "mlx")
    shutil.copy(models.text_model("tiny_llama_cycle"), tmp_path / "text")
    with abi.Context(tmp_path, LIBRARY) as context, context.open(gbnf_grammar='root ::= "a"', max_tokens=3) as stream:
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == "a"


def test_a_broken_model_is_an_error_of_open(tmp_path):
    (tmp_path / "text").mkdir()
    for name, data in make_tiny_mlx.make("gemma3_q4").items():
        (tmp_path / "text" / name).write_bytes(data[:-1] if name == "model.safetensors" else data)
    with abi.Context(tmp_path, LIBRARY) as context, pytest.raises(abi.Error) as error:
        context.open()
    assert f"{tmp_path}/text/model.safetensors: the tensor '" in error.value.message
    assert "outside the file's" in error.value.message


def test_metadata():
    with abi.Context(bundle("llama_f32"), LIBRARY) as context:
        template = LIBRARY.call_for_string("model_meta", context.handle, b"tokenizer.chat_template")
    assert "add_generation_prompt" in template
