"""`eliza completion`, and what its scripts ask for while somebody types."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

_VARIABLE = "_ELIZA_COMPLETE"


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="For which shell.")],
) -> None:
    """Print a script that completes eliza's commands and options.

    In ~/.bashrc or ~/.zshrc: eval "$(eliza completion bash)", or zsh. For fish: eliza completion fish >
    ~/.config/fish/completions/eliza.fish
    """
    if shell == "zsh":
        print("whence compdef >/dev/null || { autoload -Uz compinit && compinit; }")
    print(get_completion_script(prog_name="eliza", complete_var=_VARIABLE, shell=shell))


def prepare() -> None:
    """Lets Typer answer a shell that completes a line."""
    if _VARIABLE in os.environ:
        completion_init()
