"""The `eliza` command: what it is called with, and how it ends.

Exit codes: 0 done; 1 it failed, and a message on stderr says why (none where whoever read the output stopped reading);
2 it was called wrongly; 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from elizainference import __version__
from elizainference._errors import ElizaError
from elizainference.cli import _terminal
from elizainference.cli._backends import backends
from elizainference.cli._bench import bench
from elizainference.cli._bundle import bundle
from elizainference.cli._chat import chat
from elizainference.cli._completion import completion, prepare
from elizainference.cli._doctor import doctor
from elizainference.cli._generate import generate
from elizainference.cli._tokenize import tokenize

app = typer.Typer(
    name="eliza",
    no_args_is_help=True,
    # `eliza completion` in place of Typer's options, which write into the user's files.
    add_completion=False,
    # Messages of our own, and never a traceback: see main.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="To begin: eliza bundle fetch smollm2-135m brings a small model, and says what to type next.",
)
app.command()(generate)
app.command()(chat)
app.command()(backends)
app.command()(doctor)
app.command()(bench)
app.command()(tokenize)
app.add_typer(bundle)
app.command()(completion)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"eliza {__version__}")
        raise typer.Exit


@app.callback()
def _eliza(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Generate text with a language model on this machine, and see which backend does it."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    Args:
      arguments: without the program's name; None: those of the process.
    """
    # Under `bazel run` the working directory is Bazel's; paths are relative to the user's.
    if directory := os.environ.get("BUILD_WORKING_DIRECTORY"):
        os.chdir(directory)
    _terminal.prepare_streams()
    prepare()
    try:
        app(arguments, prog_name="eliza")
    except SystemExit as end:  # Typer ends every command with one
        return _flushed(end.code if isinstance(end.code, int) else 0)
    except KeyboardInterrupt:
        return 130
    except ElizaError as error:
        _terminal.error(str(error))
    except OSError as error:
        _terminal.error(f"reading or writing failed: {error}")
    except Exception as error:
        if os.environ.get("ELIZA_TRACEBACK"):
            traceback.print_exc()
        _terminal.error(
            f"{type(error).__name__}: {error}. This is a fault of eliza's own: please report it, with what "
            "ELIZA_TRACEBACK=1 in the environment prints."
        )
    return _flushed(1)


def _flushed(code: int) -> int:
    """`code`, unless what was printed cannot be written after all: a full disk shows now at the latest."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at its end: into nothing then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            _terminal.error(f"writing to stdout failed: {error}")
        return 1
    return code
