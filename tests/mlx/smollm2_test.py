"""A real model, converted by `eliza bundle convert --to mlx`: MLX's logits and token ids against llama.cpp's.

SmolLM2-135M's file has weights of four bits. llama.cpp would multiply them with activations that it rounds to eight,
which MLX does not; so it gets a file of the same weights as F32, which it has unpacked itself, and keys and values of
F32.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import _llama_cpp_testing
import _mlx_testing
import pytest
from elizainference.cli._main import main
from tokenizers import Tokenizer

from tests.support import abi
from tests.support.runfile import runfile
from tests.text import hf_files

# Of the largest logit. Both sum floats of 32 bits, in another order; 2.2e-5 is the most that was seen, 3e-6 for most
# prompts.
TOLERANCE = 1e-4

PROMPTS = [
    "The capital of France is Paris, and the capital of Italy is",
    "<|im_start|>user\nWhat is the boiling point of water?<|im_end|>\n<|im_start|>assistant\nThe boiling point is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) +",
    "Once upon a time, in a small village by the sea, there lived an old fisherman who",
    "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89,",
    "Überraschung! Naïve cafés, señor: “quoted” … 你好，世界 😀",
    '{"name": "Ada", "born": 1815, "known_for": ["mathematics",',
    "the the the the the the the the the the the the the the the",
    "To be, or not to be: that is the question: Whether 'tis nobler in the mind to suffer",
    "\n\n  - item one\n  - item two\n\n\t\tx = 3.14159;\r\n",
]


@pytest.fixture(scope="module")
def gguf() -> Path:
    """The demo model's bundle."""
    return runfile(os.environ["DEMO_MANIFEST"]).parent


@pytest.fixture(scope="module")
def converted(gguf, tmp_path_factory):
    """The bundle that the command makes of it; half a gigabyte, for as long as this module runs."""
    bundle = tmp_path_factory.mktemp("converted")
    (source,) = (gguf / "text").glob("*.gguf")
    assert main(["bundle", "convert", str(source), str(bundle / "text" / "SmolLM2"), "--to", "mlx"]) == 0
    yield bundle
    shutil.rmtree(bundle)


@pytest.fixture(scope="module")
def reference(gguf, tmp_path_factory):
    """reference(ids): llama.cpp's logits behind each of them."""
    unpacked = tmp_path_factory.mktemp("f32") / "SmolLM2-F32.gguf"
    (source,) = (gguf / "text").glob("*.gguf")
    _llama_cpp_testing.write_f32(str(source), str(unpacked))
    yield _llama_cpp_testing.PlainLogits(str(unpacked)).logits
    unpacked.unlink()


@pytest.fixture(scope="module")
def tokenize(gguf):
    """tokenize(text): the ids of a prompt, from the GGUF file."""
    with abi.Context(gguf) as context:
        yield lambda text: context.tokenize(text, parse_special=True)


def logits(model: _mlx_testing.Model, ids: list[int]) -> list[list[float]]:
    """MLX's behind each of the ids: one pass over all but a few, and those one by one."""
    model.clear()
    rows = model.logits(ids[:-3])
    for token in ids[-3:]:
        rows += model.logits([token])
    return rows


def distance(rows, expected) -> float:
    """The largest difference, over the largest logit."""
    largest = max(abs(value) for row in expected for value in row)
    return (
        max(abs(a - b) for row, wanted in zip(rows, expected, strict=True) for a, b in zip(row, wanted, strict=True))
        / largest
    )


def test_logits(converted, reference, tokenize):
    model = _mlx_testing.Model(str(converted / "text" / "SmolLM2"))
    decided = 0
    for prompt in PROMPTS:
        ids = tokenize(prompt)
        expected = reference(ids)
        rows = logits(model, ids)
        found = distance(rows, expected)
        assert found < TOLERANCE, prompt
        largest = max(abs(value) for row in expected for value in row)
        for row, wanted in zip(rows, expected, strict=True):
            second, first = sorted(wanted)[-2:]
            if first - second > TOLERANCE * largest:
                assert row.index(max(row)) == wanted.index(first), prompt
                decided += 1
    assert decided > 100


# What a conversion can get wrong, as a change of the config that amounts to it.
WRONG = {
    "another rope base": {"rope_theta": 10000.0},
    "another norm epsilon": {"rms_norm_eps": 1e-6},
    "the rows of rotated projections in GGUF's order": {"rope_traditional": True},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_on_purpose(converted, reference, tokenize, wrong, tmp_path):
    right = converted / "text" / "SmolLM2"
    config = json.loads((right / "config.json").read_text())
    assert all(config.get(key, False) != value for key, value in WRONG[wrong].items())
    (tmp_path / "config.json").write_text(json.dumps(config | WRONG[wrong]))
    (tmp_path / "model.safetensors").symlink_to(right / "model.safetensors")
    ids = tokenize(PROMPTS[0])
    found = distance(logits(_mlx_testing.Model(str(tmp_path)), ids), reference(ids))
    assert found > 5 * TOLERANCE


def test_the_same_tokens_end_a_generation(gguf, converted):
    (source,) = (gguf / "text").glob("*.gguf")
    ends = json.loads((converted / "text" / "SmolLM2" / "generation_config.json").read_text())["eos_token_id"]
    theirs = _llama_cpp_testing.acquire_vocabulary(str(source)).end_tokens
    # <reponame>, which llama.cpp takes for a mark of code that is filled in.
    assert set(theirs) - set(ends) == {4}
    assert set(ends) - set(theirs) == set()


def test_token_ids(gguf, converted, monkeypatch):
    """llama.cpp's of the GGUF file, ours of the directory, and the `tokenizers` package's of the same."""
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "cpu")
    theirs = Tokenizer.from_file(str(converted / "text" / "SmolLM2" / "tokenizer.json"))
    with abi.Context(gguf) as llama_cpp, abi.Context(converted) as mlx:
        for parse_special in (True, False):
            theirs.encode_special_tokens = not parse_special
            for text in PROMPTS + hf_files.HARD:
                ids = mlx.tokenize(text, add_special=False, parse_special=parse_special)
                assert ids == theirs.encode(text, add_special_tokens=False).ids, text
                if "\U00011de0" not in text:  # digits of a Unicode that llama.cpp does not know yet
                    assert ids == llama_cpp.tokenize(text, add_special=False, parse_special=parse_special), text
                assert mlx.detokenize(ids) == llama_cpp.detokenize(ids), text
