"""`eliza chat`: on a terminal, in a pipe, without Unicode, and what its slash commands do."""

from __future__ import annotations

import re

import pytest

from tests.python.program import ELIZA, check_message, run
from tests.python.terminal import Terminal, plain
from tests.support import models

# Its template marks turns, and its answers are noise: what matters here is that there are some.
RANDOM = str(models.bundle("tiny_llama_random"))
OPTIONS = ("--max-tokens", "6", "--context-size", "256")


def chat(stdin: str, *arguments: str, **variables: str):
    return run(ELIZA, "chat", RANDOM, *OPTIONS, *arguments, stdin=stdin, **variables)


def test_piped():
    result = chat("one\n\ntwo\n")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) >= 2
    assert "\x1b" not in result.stdout and "> " not in result.stdout
    # Turns of one conversation: the second is not what it would be alone.
    alone = chat("two\n").stdout
    assert not result.stdout.endswith(alone)
    assert result.stdout.startswith(chat("one\n").stdout)


def test_commands_in_a_pipe(tmp_path):
    file = tmp_path / "saved"
    result = chat(f"one\n/stats\n/save {file}\n/reset\n/load {file}\n/backend\n/help\n/quit\nnever\n")
    assert result.returncode == 0
    notes = result.stderr
    for fragment in (
        "6 tokens",
        r"prompt of \d+ tokens, 0 of them read before",
        rf"saved to {file}: 2 messages",
        "a new conversation",
        rf"going on with {file}: 2 messages",
        "/system TEXT",
    ):
        assert re.search(fragment, notes), notes
    assert re.search(r"^llama\.cpp +yes", result.stdout, re.MULTILINE)
    assert not re.search(r" $", result.stdout, re.MULTILINE)
    assert "never" not in result.stdout


def test_a_system_message_changes_answers():
    plainly = chat("one\n").stdout
    assert chat("one\n", "--system", "Be brief").stdout == chat("/system Be brief\none\n").stdout != plainly
    # /reset keeps it.
    again = chat("one\n/reset\none\n", "--system", "Be brief").stdout
    assert again == 2 * chat("one\n", "--system", "Be brief").stdout


@pytest.mark.parametrize("command", ["/nope", "/save", "/load", "/system", "/load /no/such/file"])
def test_commands_that_are_none(command):
    result = chat(f"{command}\nnever\n")
    what = {"/save": "takes a FILE", "/load": "takes a FILE", "/system": "takes a TEXT"}
    check_message(result.stderr, command.split()[-1], what.get(command, ""))
    assert (result.returncode, result.stdout) == (1, "")


def test_errors_in_a_pipe_end_it():
    result = chat("a" * 3000 + "\nnever\n")
    assert (result.returncode, result.stdout) == (1, "")
    check_message(result.stderr, "256")


def test_a_model_without_a_template(tmp_path):
    key = b"tokenizer.chat_template"
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "m.gguf").write_bytes(
        models.text_model("tiny_llama_cycle").read_bytes().replace(key, key.upper())
    )
    result = run(ELIZA, "chat", tmp_path, stdin="one\n")
    assert result.returncode == 1
    check_message(result.stderr, "chat template")


def test_on_a_terminal(tmp_path):
    history = tmp_path / "state" / "history"
    arguments = ("chat", RANDOM, *OPTIONS, "--history", str(history))
    with Terminal(ELIZA, *arguments, COLUMNS="60") as terminal:
        assert "/help" in terminal.read("> $")
        terminal.type("one\r")
        terminal.read("(?s)one\n.*> $")
        terminal.type('"""first\r')
        terminal.read(r"(?m)^\. $")
        terminal.type('second"""\r')
        terminal.read("(?s)second.*> $")
        terminal.type("/backend\r")
        narrow = plain(terminal.read("(?s)mlx-coreml: .*> $"))
        assert all(len(line) <= 60 for line in narrow.splitlines()), narrow
        # On a terminal an error ends no conversation.
        terminal.type("/nope\r")
        terminal.read("(?s)eliza: .*/help.*> $")
        terminal.type("b" * 600 + "\r")
        terminal.read("(?s)eliza: .*256.*> $")
        terminal.type("\x04")  # Ctrl-D
        assert terminal.end() == 0
    assert history.read_text().splitlines()[:2] == ["one", '"""first']
    assert history.stat().st_mode & 0o777 == 0o600
    with Terminal(ELIZA, *arguments) as terminal:
        terminal.read("> $")
        terminal.type("\x1b[A")  # arrow up: the last line of the chat before
        terminal.read("b{40}")
        terminal.type("\x15/quit\r")  # Ctrl-U: an empty line
        assert terminal.end() == 0


@pytest.mark.parametrize(
    "variables",
    [{"TERM": "dumb"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["dumb", "without Unicode"],
)
def test_plain_terminals(variables):
    with Terminal(ELIZA, "chat", RANDOM, *OPTIONS, "--no-history", **variables) as terminal:
        terminal.read("> $")
        terminal.type("one\r")
        terminal.read("(?s)one\n.*> $")
        # Nothing that moves the cursor up, or hides it.
        assert not re.search(r"\x1b\[\d*A|\x1b\[\?25l", terminal.output)
        terminal.type("/quit\r")
        assert terminal.end() == 0
