"""ggml's and MLX's copies of a GGUF reader share names; in one process, each runtime calls its own."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import _mlx_session_testing
import pytest

from tests.support import abi, models
from tests.support.isolated import isolated
from tests.support.runfile import runfile

LIBRARY = runfile(f"elizainference_gates_on/libelizainference.{'dylib' if sys.platform == 'darwin' else 'so'}")


def llama_cpp_text() -> str:
    """What llama.cpp says, in a library that is linked with MLX, after it read a GGUF file."""
    bundle = models.bundle("tiny_llama_cycle")
    with abi.Context(bundle, abi.Library(LIBRARY)) as context, context.open(max_tokens=5) as stream:
        stream.prefill(context.tokenize("abc"))
        return stream.generate()


def mlx_tensors(folder: Path) -> int:
    """How many tensors MLX finds in the same file. With ggml's gguf_get_key in place of its own, none."""
    # A copy: MLX opens such files for writing, too.
    copy = folder / "model.gguf"
    copy.write_bytes(models.text_model("tiny_llama_cycle").read_bytes())
    return _mlx_session_testing.gguf_tensors(str(copy))


@pytest.mark.parametrize("first", ["llama.cpp", "MLX"])
def test_both_readers_in_one_process(first, tmp_path):
    @isolated
    def check():
        # As visible as a host can make it.
        ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_GLOBAL)
        expected = models.alphabet("c", 5)
        if first == "llama.cpp":
            assert llama_cpp_text() == expected
        assert mlx_tensors(tmp_path) > 10
        assert llama_cpp_text() == expected
        assert mlx_tensors(tmp_path) > 10

    check()


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
def test_no_name_is_in_both():
    def exported(path) -> set[str]:
        listing = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True)
        return set(re.findall(r" [TWDBVu] (\S+)$", listing.stdout, re.MULTILINE))

    mlx = exported(LIBRARY.parent / "libmlx.so")
    assert "gguf_get_key" in mlx
    assert exported(LIBRARY) & mlx == set()
