"""The packaged libraries run: a C client generates with each of them, on this machine or under qemu-user.

Needs qemu-user and libc6-arm64-cross (Debian's names), which the private root has.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

from tests.support import models
from tests.support.runfile import runfile

CPU = os.environ["CPU"]
# What `uname -m` calls it, and where Debian keeps its loader and libc.
MACHINE, LIBRARIES = {"arm64": ("aarch64", "/usr/aarch64-linux-gnu"), "x86_64": ("x86_64", "/")}[CPU]
# A CPU from before the default level, and what of that it lacks.
OLD_CPU, MISSING = {"arm64": ("cortex-a53", "dotprod"), "x86_64": ("Nehalem", "avx2")}[CPU]


def _client(*arguments: object, qemu: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    """Runs the client that was linked with the library."""
    emulator = [] if platform.machine() == MACHINE and not qemu else [f"qemu-{MACHINE}", "-L", LIBRARIES, *qemu]
    command = [*emulator, runfile(os.environ["CLIENT"]), *map(str, arguments)]
    # qemu gives its own environment to the program.
    folder = runfile(os.environ["LIBRARY"]).parent
    return subprocess.run(command, capture_output=True, env=os.environ | {"LD_LIBRARY_PATH": str(folder)})


def _says(bundle: Path, prompt: str, count: int) -> str:
    """What the model says after `prompt`; the client itself tries cancel, reset and reset_keep on the way."""
    done = _client(bundle, prompt, count)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("model", ["tiny_llama_cycle", "tiny_gemma3_cycle"])
def test_greedy_text(model):
    assert _says(models.bundle(model), "abc", 40) == models.alphabet("abc", 40)


def test_whole_characters():
    # Two tokens for each character, on average.
    assert _says(models.bundle("tiny_llama_utf8"), "a", 64) == models.utf8("a", 32)


def test_an_empty_directory_is_an_error(tmp_path):
    done = _client(tmp_path, "abc", 1)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr.decode()
    assert done.stdout == b""


def test_a_cpu_that_is_too_old_is_told_so():
    done = _client(models.bundle("tiny_llama_cycle"), "abc", 1, qemu=("-cpu", OLD_CPU))
    assert done.returncode == 1
    message = done.stderr.decode()
    assert re.search(rf"\b{MISSING}\b", message)
    assert "--//platforms:cpu_level=baseline" in message
