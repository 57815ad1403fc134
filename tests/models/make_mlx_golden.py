#!/usr/bin/env python3
"""Golden logits for //tests/mlx: what mlx-lm's own model classes compute from the weights of make_tiny_mlx.py.

Run by hand, from the workspace's root, when a model is added to MODELS; the results are in tests/mlx/golden:

    pip install mlx==0.32.4 mlx-cpu==0.32.4
    pip download --no-deps mlx-lm==0.32.2 && unzip mlx_lm-*.whl -d MLX_LM      # its transformers import is not needed
    PYTHONPATH=. python3 tests/models/make_mlx_golden.py MLX_LM tests/mlx/golden

Writes NAME.safetensors for each model: `ids` (24 token ids), `steps` (the logits after a prefill of 5 of them and after
each of 19 single steps, past the sliding window of 8), `prefill` (the logits of 20 at once).
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten

from tests.models import make_tiny_mlx, vocabulary

IDS = [(i * 97 + 5) % vocabulary.SIZE for i in range(24)]


def _load(tensor):
    types_of = {"F32": mx.float32, "U32": mx.uint32}
    return mx.array(memoryview(tensor.values()), dtype=types_of[tensor.dtype]).reshape(tensor.shape)


def _build(model):
    module = importlib.import_module(f"mlx_lm.models.{model.architecture}")
    known = inspect.signature(module.ModelArgs).parameters
    built = module.Model(module.ModelArgs(**{key: value for key, value in model.config.items() if key in known}))
    weights = built.sanitize({name: _load(tensor) for name, tensor in make_tiny_mlx.tensors(model).items()})
    if model.bits:
        nn.quantize(built, group_size=model.group_size, bits=model.bits)
    built.update(tree_unflatten(list(weights.items())), strict=True)
    return built


def _golden(model, path):
    cache = model.make_cache()
    steps = [model(mx.array([IDS[:5]]), cache)[0, -1]]
    steps += [model(mx.array([[token]]), cache)[0, -1] for token in IDS[5:]]
    prefill = model(mx.array([IDS[:20]]), model.make_cache())[0]
    mx.save_safetensors(str(path), {"ids": mx.array(IDS), "steps": mx.stack(steps), "prefill": prefill})


def main() -> None:
    """Writes the golden logits of every model."""
    wheel, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, wheel)
    package = types.ModuleType("mlx_lm")  # in place of its __init__, which imports transformers
    package.__path__ = [f"{wheel}/mlx_lm"]
    sys.modules["mlx_lm"] = package
    for name, model in make_tiny_mlx.MODELS.items():
        _golden(_build(model), out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
