"""Ctrl-C at random moments: the terminal is as it was, no thread goes on, and nothing is said but what should be."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from tests.python.program import ELIZA, LIMIT_S
from tests.python.terminal import Terminal, plain
from tests.support.runfile import runfile

BUNDLE = str(runfile(os.environ["DEMO_MANIFEST"]).parent)
QUESTION = "Write a long story about a fox."


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_a_chat_survives_twenty():
    moments = random.Random(20)
    with Terminal(
        ELIZA, "chat", BUNDLE, "--no-history", "--context-size", "512", "--system", "You are a helpful assistant."
    ) as terminal:
        terminal.read("> $")
        before = threads_of(terminal.pid)
        for _ in range(20):
            terminal.type(QUESTION + "\r")
            terminal.read(r"fox\.\n")
            time.sleep(moments.uniform(0, 0.6))
            terminal.ctrl_c()
            assert "Traceback" not in terminal.read("(?s)ended; the conversation.*> $")
            assert threads_of(terminal.pid) == before
        terminal.type("What is the capital of France?\r")
        assert "Paris" in plain(terminal.read(r"(?s)Paris.*> $"))
        terminal.type("/quit\r")
        assert terminal.end() == 0


def test_while_it_begins():
    """From the moment that the program is there: while the model is loaded, and up to its prompt."""
    moments = random.Random(8)
    ends = []
    for _ in range(20):
        with Terminal(ELIZA, "chat", BUNDLE, "--no-history", "--context-size", "512") as terminal:
            wait_for_library(terminal.pid)
            time.sleep(moments.uniform(0, 0.5))
            terminal.ctrl_c()
            # Where it came to its prompt already, it stays there; and what was typed with Ctrl-C is no line.
            while terminal.runs:
                terminal.type("/quit\r")
                time.sleep(0.5)
            ends.append(terminal.end())
            assert "Traceback" not in terminal.output and "Exception ignored" not in terminal.output
    assert set(ends) <= {0, 130} and 130 in ends


def wait_for_library(pid: int) -> None:
    maps = Path(f"/proc/{pid}/maps")
    end = time.monotonic() + LIMIT_S
    while "libelizainference.so" not in maps.read_text():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_at_an_empty_prompt():
    with Terminal(ELIZA, "chat", BUNDLE, "--no-history", "--context-size", "512") as terminal:
        terminal.read("> $")
        terminal.settle()
        terminal.ctrl_c()
        assert "/quit" in terminal.read("(?s)once more.*> $")
        # A line in between begins the count again.
        terminal.type("/stats\r")
        terminal.read("(?s)nothing was answered yet.*> $")
        terminal.settle()
        terminal.ctrl_c()
        terminal.read("(?s)once more.*> $")
        terminal.settle()
        terminal.ctrl_c()
        assert terminal.end() == 130


def test_progress_bars():
    moments = random.Random(3)
    for _ in range(5):
        with Terminal(ELIZA, "bundle", "verify", BUNDLE) as terminal:
            terminal.read(r"\x1b\[\?25l")  # the cursor is hidden while a bar is drawn
            time.sleep(moments.uniform(0, 0.2))
            terminal.ctrl_c()
            assert terminal.end() in (0, 130)
            assert "Traceback" not in terminal.output


def test_generate():
    moments = random.Random(5)
    for _ in range(5):
        with Terminal(ELIZA, "generate", "--bundle", BUNDLE, "--context-size", "512", QUESTION) as terminal:
            terminal.read(r"\w")
            time.sleep(moments.uniform(0, 0.5))
            terminal.ctrl_c()
            assert terminal.end() == 130
            assert "Traceback" not in terminal.output
            # The shell's prompt begins a line.
            assert terminal.output.endswith("\n")
