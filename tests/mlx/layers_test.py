"""Quantised matrices against the same ones unpacked, by MLX's own packing."""

from __future__ import annotations

import json

import _mlx_testing
import pytest


@pytest.mark.parametrize("group_size", [32, 64, 128])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_every_packing(bits, group_size, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    _mlx_testing.save_quantised(str(tmp_path), 48, 256, bits, group_size)
    product, row = _mlx_testing.quantisation_error(str(tmp_path), 48, 256)
    assert product < 1e-3
    assert row < 1e-6
