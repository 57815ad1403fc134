"""`eliza bundle convert`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from elizainference.cli import _files, _terminal
from elizainference.convert import count_values, gguf_to_mlx


class Format(str, Enum):
    """What a model can become."""

    mlx = "mlx"


class Dtype(str, Enum):
    """What its weights can become."""

    f32 = "f32"
    f16 = "f16"
    bf16 = "bf16"


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="SRC.gguf", help="The model.", exists=True, dir_okay=False, readable=True)
    ],
    destination: Annotated[Path, typer.Argument(metavar="DEST", help="The directory to make: BUNDLE/text/NAME.")],
    to: Annotated[Format, typer.Option(help="The format.")] = Format.mlx,
    dtype: Annotated[Dtype, typer.Option(help="Of the weights.")] = Dtype.f32,
) -> None:
    """Convert a GGUF model (llama, gemma3, gemma4) into a directory for MLX."""
    del to  # there is one
    with _files.progress(source.name, count_values(source)) as advance:
        made = gguf_to_mlx(source, destination, dtype=dtype.value, progress=advance)
    _terminal.note(f"{made}: {sum(file.stat().st_size for file in made.iterdir()) / 1e6:.0f} MB")
