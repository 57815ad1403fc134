"""What README.md shows works: its commands, its Python, and its way to link the library."""

from __future__ import annotations

import io
import os
import re
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.dist import sdk
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


def test_cmake(tmp_path):
    (code,) = fences(README, "cmake")
    (tmp_path / "app.c").write_text(
        "#include <eliza-inference-ffi.h>\n#include <stdio.h>\n\n"
        "int main(void) { return puts(eliza_inference_abi_version()) < 0; }\n"
    )
    lists = ["cmake_minimum_required(VERSION 3.16)", "project(app C)", "add_executable(app app.c)", code]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lists))
    prefix = sdk.unpack(tmp_path / "sdk")
    for arguments in (["-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"], ["--build", "build"]):
        done = subprocess.run(["cmake", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.check_output([tmp_path / "build" / "app"], text=True) == "15\n"


def test_the_number_of_symbols():
    (count,) = re.findall(r"(\d+) symbols", README)
    assert int(count) == len(abi.SIGNATURES)
