"""The `eliza` command."""

from elizainference.cli._main import main

__all__ = ["main"]
