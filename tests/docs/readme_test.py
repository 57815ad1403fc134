"""What README.md shows works: its commands and its Python (its CMake: tests/dist)."""

from __future__ import annotations

import io
import os
import re
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.docs.markdown import fences
from tests.support import abi
from tests.support.runfile import runfile

README = runfile("README.md").read_text()

# `./bazelw`, where there is no Bazel: `run` starts the program that was built, and building and testing is what is
# being done. An unknown target is an error.
BAZELW = """\
#!/bin/sh
set -eu
command=$1 target=$2
case $command in
  build | test) exit ;;
esac
shift 2
[ "${1-}" != -- ] || shift
case $target in
  //:demo) exec "$DEMO" "$@" ;;
  //python:eliza) exec "$ELIZA" "$@" ;;
esac
echo "this test does not know $command $target" >&2
exit 1
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that stands for a clone."""
    script = tmp_path / "bazelw"
    script.write_text(BAZELW)
    script.chmod(0o755)
    return tmp_path


def _shell(clone: Path, script: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ELIZA_", "PYTHON"))}
    programs = {"DEMO": str(runfile("python/demo")), "ELIZA": str(runfile("python/eliza"))}
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=clone,
        env={**kept, **programs, "ELIZA_THREADS": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands(clone):
    start, choosing = fences(README, "sh")
    assert "Paris" in _shell(clone, start)
    text = _shell(clone, choosing)
    # The table of `eliza backends`, then an answer.
    assert re.search(r"llama\.cpp .*litert-lm .*mlx-coreml .*Paris", text, re.DOTALL), text


def test_a_question_of_ones_own(clone):
    (command,) = re.findall(r"`(\./bazelw run //:demo -- \".+?\")`", README)
    assert "Paris" in _shell(clone, command)


def test_python():
    (code,) = fences(README, "python")
    output = io.StringIO()
    with redirect_stdout(output):
        exec(code, {"bundle": runfile(os.environ["DEMO_MANIFEST"]).parent})
    assert "Paris" in output.getvalue()
    assert "name='llama.cpp'" in output.getvalue()


def test_the_number_of_symbols():
    (count,) = re.findall(r"(\d+) symbols", README)
    assert int(count) == len(abi.SIGNATURES)
