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


def complete(folder: Path, *words: str, **more: str) -> set[str]:
    program = folder / "eliza"
    program.unlink(missing_ok=True)
    program.symlink_to(runfile(ELIZA))
    variables = environment(**more)
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


def test_bundles(tmp_path):
    bundles = tmp_path / "elizainference" / "bundles"
    (bundles / "smollm2-135m").mkdir(parents=True)
    for words in (("chat", "smol"), ("generate", "--bundle", "smol"), ("bench", "")):
        assert complete(tmp_path, "eliza", *words, XDG_DATA_HOME=str(tmp_path)) == {"smollm2-135m"}
    # What is not fetched is no bundle yet.
    assert complete(tmp_path, "eliza", "chat", "smol", XDG_DATA_HOME=str(bundles)) == set()


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
