"""Ctrl-C at random moments: the terminal is as it was, no thread goes on, and nothing is said but what should be."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from tests.python.program import ELIZA
from tests.python.terminal import Terminal
from tests.support.runfile import runfile
from tests.support.waiting import eventually, threads_of

BUNDLE = str(runfile(os.environ["DEMO_MANIFEST"]).parent)
QUESTION = "Write a long story about a fox."
# An answer has no end of its own: however fast the machine is, Ctrl-C does not come too late.
ENDLESS = ("--grammar", 'root ::= [a-zA-Z ,."] root', "--context-size", "4096")


def test_a_chat_survives_twenty():
    moments = random.Random(20)
    with Terminal(
        ELIZA, "chat", BUNDLE, "--no-history", *ENDLESS, "--system", "You are a helpful assistant."
    ) as terminal:
        terminal.read("> $")
        terminal.settle()
        before = threads_of(terminal.pid)
        for _ in range(20):
            terminal.type(QUESTION + "\r")
            terminal.read(r"fox\.\n")
            terminal.until_at_work()
            time.sleep(moments.uniform(0, 0.6))
            terminal.ctrl_c()
            assert "Traceback" not in terminal.read("(?s)ended; the conversation.*> $")
            assert eventually(lambda: threads_of(terminal.pid) <= before), (threads_of(terminal.pid), before)
        terminal.type("What is the capital of France?\r")
        terminal.read(r"Paris")
        terminal.ctrl_c()
        assert "Traceback" not in terminal.read("(?s)ended; the conversation.*> $")
        terminal.type("/quit\r")
        assert terminal.end() == 0


def test_while_it_begins():
    """From the moment that the program is there: while the model is loaded, and up to its prompt."""
    moments = random.Random(8)
    ends = []
    for attempt in range(20):
        with Terminal(ELIZA, "chat", BUNDLE, "--no-history", "--context-size", "512") as terminal:
            maps = Path(f"/proc/{terminal.pid}/maps")
            assert eventually(lambda maps=maps: "libelizainference.so" in maps.read_text()), terminal.output
            time.sleep(moments.uniform(0, 0.5) * attempt / 20)
            terminal.ctrl_c()
            # Where it came to its prompt already, it stays there.
            terminal.type_until_it_ends("/quit\r")
            ends.append(terminal.end())
            assert "Traceback" not in terminal.output and "Exception ignored" not in terminal.output
    assert set(ends) <= {0, 130} and 130 in ends, ends


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
        with Terminal(ELIZA, "generate", "--bundle", BUNDLE, *ENDLESS, QUESTION) as terminal:
            terminal.read(r"\w")
            time.sleep(moments.uniform(0, 0.5))
            terminal.ctrl_c()
            assert terminal.end() == 130
            assert "Traceback" not in terminal.output
            # The shell's prompt begins a line.
            assert terminal.output.endswith("\n")
