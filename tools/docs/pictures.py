"""The pictures of the documents: `eliza chat`, `backends` and `bench` on a terminal, and a plot of the last, as SVG.

./bazelw run //tools/docs:pictures -- docs/pictures

Runs the command on a pseudo-terminal with the demo model, keeps what a terminal would show at the end, and has Rich
draw it.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from python.runfiles import runfiles
from rich.console import Console
from rich.text import Text

WIDTH = 108
QUESTIONS = ("What is the capital of France?", "And of Italy?", "/stats")

# The bundle, in the folder that the command runs in.
BUNDLE = "smollm2-135m"


def screen(output: str) -> list[str]:
    """The lines that a terminal shows after `output`, colours included. It understands what Rich's Live sends."""
    lines, row = [""], 0
    for part in re.findall(r"\r\n|\r|\n|\x1b\[[\d;?]*[A-Za-z]|[^\r\n\x1b]+", output):
        if part in ("\n", "\r\n"):
            row += 1
            if row == len(lines):
                lines.append("")
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part != "\r" and not part.startswith("\x1b[?"):
            lines[row] += part
    return [line.rstrip() for line in lines]


def run(folder: str, arguments: list[str], typed: tuple[str, ...] = ()) -> str:
    """What the command shows in this folder; each line is typed when it waits at its prompt."""
    eliza = runfiles.Create().Rlocation("_main/python/eliza")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LC_ALL": "C.UTF-8"}
    environment["BUILD_WORKING_DIRECTORY"] = folder
    process = subprocess.Popen([eliza, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    output, waiting = "", list(typed)
    last = time.monotonic()
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                output += os.read(ours, 65536).decode()
            except OSError:  # Linux's way to say that the other end is closed
                break
            last = time.monotonic()
        elif output.endswith("> ") and time.monotonic() - last > 0.5:
            os.write(ours, (waiting.pop(0) + "\r").encode() if waiting else b"\x04")
            last = time.monotonic()
    os.close(ours)
    return output


def draw(command: str, output: str, path: Path) -> None:
    """A picture of a terminal that shows a command and its output."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), command))
    lines = screen(output)
    while lines and lines[-1] in ("", ">"):
        lines.pop()
    for line in lines:
        console.print(Text.from_ansi(line))
    # The same output is the same file. Rich's font would come from another host: a reader's own will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="eliza", unique_id=path.stem), flags=re.DOTALL)
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


def main() -> None:
    folder = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    # For a machine that has something else to do as well.
    os.environ["ELIZA_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as work:
        bundle = Path(runfiles.Create().Rlocation(os.environ["DEMO_MANIFEST"])).parent
        Path(work, BUNDLE).symlink_to(bundle)
        chat = ["chat", BUNDLE, "--system", "You are a helpful assistant."]
        draw(shlex.join(["eliza", *chat]), run(work, [*chat, "--no-history"], QUESTIONS), folder / "chat.svg")
        draw(f"eliza backends {BUNDLE}", run(work, ["backends", BUNDLE]), folder / "backends.svg")
        bench = ["bench", BUNDLE, "--prompt", "128", "--decode", "32"]
        output = run(work, [*bench, "--plot", str(folder / "bench-plot.svg")])
        draw(shlex.join(["ELIZA_THREADS=1", "eliza", *bench]), output, folder / "bench.svg")


if __name__ == "__main__":
    main()
