"""The backends that the suite runs on: what each one's models are, and which of the optional things it can do.

CONFORMANCE_BACKEND names the one of this run; defs.bzl sets it, and what its library needs.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.runfile import runfile


@dataclass(frozen=True)
class Backend:
    """A backend, as the suite knows it.

    Attributes:
      name: as ELIZA_LLM_BACKEND and the statistics call it.
      models: {what it is for: its bundle directory among the runfiles}. "noise" generates tokens of all kinds and ends
        by max_tokens alone; the others' texts are known: "utf8" and "end" are tests/models/BUILD.bazel's
        tiny_llama_utf8 and tiny_llama_end, "recall" is tests/llama_cpp's recall_llama.
      environment: what its runtime needs beside ELIZA_LLM_BACKEND.
      runtime: the variable that says where its runtime's library is; CONFORMANCE_RUNTIME names it among the runfiles.
      can: of "grammar", "drafter", "slots", "reset_keep", "seed", "embed", what it honours. The rest it must refuse in
        words, or do without: reset_keep keeps nothing. "all_ids": its prompts may hold any id of the vocabulary.
      converted: its models are made of these, which are GGUF files, by elizainference.convert.
      vocabulary: the number of token ids.
      device: as the statistics call it.
    """

    name: str
    models: dict[str, str]
    vocabulary: int
    environment: dict[str, str] = field(default_factory=dict)
    runtime: str | None = None
    can: frozenset[str] = frozenset()
    device: str = "cpu"
    converted: bool = False

    def bundle(self, kind: str) -> Path | None:
        """The bundle of a kind of model; None where the backend has none."""
        if kind not in self.models:
            return None
        bundle = runfile(self.models[kind])
        return _converted(bundle) if self.converted else bundle


@functools.cache
def _converted(bundle: Path) -> Path:
    """A GGUF bundle as one for MLX, for as long as this process lives."""
    from elizainference.convert import gguf_to_mlx

    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    (source,) = (bundle / "text").glob("*.gguf")
    gguf_to_mlx(source, directory / "text" / "model")
    return directory


_TINY_LLAMA = {
    "noise": "tests/models/tiny_llama_random_bundle",
    "utf8": "tests/models/tiny_llama_utf8_bundle",
    "end": "tests/models/tiny_llama_end_bundle",
    "recall": "tests/llama_cpp/recall_llama_bundle",
}

BACKENDS = [
    Backend(
        name="llama.cpp",
        models=_TINY_LLAMA,
        vocabulary=362,
        can=frozenset({"grammar", "drafter", "slots", "reset_keep", "seed", "embed", "all_ids"}),
    ),
    Backend(
        name="mlx-coreml",
        models=_TINY_LLAMA,
        converted=True,
        vocabulary=362,
        environment={"ELIZA_MLX_DEVICE": "cpu"},
        can=frozenset({"slots", "reset_keep", "seed", "all_ids"}),
    ),
    Backend(
        name="litert-lm",
        models={"noise": "tests/models/tiny_gemma3_litertlm_bundle"},
        vocabulary=512,
        environment={"ELIZA_LITERT_ACCELERATOR": "cpu"},
        runtime="ELIZA_LITERT_LM_LIBRARY",
        can=frozenset({"reset_keep", "seed"}),
    ),
]


def current() -> Backend:
    """The backend of this run."""
    name = os.environ["CONFORMANCE_BACKEND"]
    return next(backend for backend in BACKENDS if backend.name == name)
