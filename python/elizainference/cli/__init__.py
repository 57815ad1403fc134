"""The `eliza` command."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    Args:
      arguments: without the program's name; None: those of the process.
    """
    # What the command imports takes a while.
    from elizainference.cli._main import main as run

    return run(arguments)


def program() -> NoReturn:
    """The command as a process: runs it and ends. Ctrl-C at any moment ends it too, quietly."""
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    # The interpreter's own end is not to be interrupted: it would show a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


__all__ = ["main", "program"]
