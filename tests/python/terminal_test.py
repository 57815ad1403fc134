"""The eliza command on a terminal: a pseudo-terminal here, whose other end sees what a terminal would."""

from __future__ import annotations

import os
import pty
import re
import subprocess

from tests.python.program import ELIZA, LIMIT_S, environment
from tests.support import models
from tests.support.runfile import runfile


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """What the command sends to a terminal, stdout and stderr together."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [runfile(ELIZA), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**{"TERM": "xterm-256color", **variables}),
    )
    os.close(theirs)
    output = b""
    try:
        while data := os.read(ours, 65536):
            output += data
    except OSError:  # Linux's way to say that the other end is closed
        pass
    os.close(ours)
    assert process.wait(LIMIT_S) == 0
    return output.decode().replace("\r\n", "\n")


def generate(bundle: str, *arguments: str, **variables: str) -> str:
    return on_a_terminal("generate", "--bundle", str(models.bundle(bundle)), "--raw", *arguments, **variables)


def test_answer_then_figures():
    output = generate("tiny_llama_cycle", "abc", "--max-tokens", "5")
    answer, figures = output.splitlines()
    assert answer == "defgh"
    assert "5 tokens" in figures
    assert figures.startswith("\x1b[2m")  # dim


def test_no_colour_when_it_is_not_wanted():
    assert "\x1b" not in generate("tiny_llama_cycle", "abc", "--max-tokens", "5", NO_COLOR="1", TERM="dumb")


def test_a_terminal_without_unicode():
    output = generate(
        "tiny_llama_utf8", "a", "--max-tokens", "16", LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert output.startswith("?b?c?d?a")


def test_narrow():
    output = on_a_terminal("backends", str(models.bundle("tiny_llama_cycle")), COLUMNS="60")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()
    assert all(len(line) <= 60 for line in lines), lines
    assert lines[0].split() == ["backend", "compiled", "available", "serves", "rank", "chosen"]
    assert any(line.startswith("mlx-coreml: ") for line in lines)


def test_no_prompt():
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [runfile(ELIZA), "generate", "--bundle", "x"],
        stdin=theirs,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=LIMIT_S,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    # Rather than to wait for somebody to type.
    assert result.returncode == 2 and "prompt" in result.stderr


def test_control_characters_of_the_model_are_shown_and_not_obeyed():
    output = generate("tiny_llama_escape", "a", "--max-tokens", "12")
    answer = output.splitlines()[0]
    assert "\x1b" not in answer and "\x07" not in answer
    assert answer.startswith("␛[31mred␇")
    # A file gets what the model said.
    result = subprocess.run(
        [
            runfile(ELIZA),
            "generate",
            "--bundle",
            str(models.bundle("tiny_llama_escape")),
            "--raw",
            "a",
            "--max-tokens",
            "12",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        timeout=LIMIT_S,
        check=True,
    )
    assert result.stdout.startswith(b"\x1b[31mred\x07")
