"""`eliza completion`: the scripts, and bash with one of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.python.program import ELIZA, LIMIT_S, environment, run
from tests.support.runfile import runfile

# What readline would do, with the words of the line.
PRESS_TAB = """\
eval "$(eliza completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_eliza_completion eliza
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(folder: Path, *words: str) -> set[str]:
    (folder / "eliza").symlink_to(runfile(ELIZA))
    variables = environment()
    done = subprocess.run(
        ["bash", "-c", PRESS_TAB, "bash", *words],
        env={**variables, "PATH": f"{folder}:{variables['PATH']}"},
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        timeout=LIMIT_S,
    )
    return set(done.stdout.split())


def test_commands(tmp_path):
    assert complete(tmp_path, "eliza", "ch") == {"chat"}


def test_options(tmp_path):
    assert complete(tmp_path, "eliza", "generate", "--cache-type") == {"--cache-type-k", "--cache-type-v"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell):
    script = run(ELIZA, "completion", shell)
    assert (script.returncode, script.stderr) == (0, "")
    assert f"complete_{shell}" in script.stdout


def test_other_shells():
    result = run(ELIZA, "completion", "tcsh")
    assert result.returncode == 2 and "bash" in result.stderr
