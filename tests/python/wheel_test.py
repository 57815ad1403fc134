"""The wheel: what is in it, what it says of itself, and that a clean Python does with it what it should."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from elf_tag import platform_tag

from tests.python.program import LIMIT_S, environment
from tests.support import models
from tests.support.runfile import runfile

(WHEEL,) = runfile("python/wheel/wheel").glob("*.whl")

# Packed; the most that a change may add without anybody looking at it.
BUDGET = 5_000_000

ALLOWED = re.compile(
    r"elizainference/((cli|convert)/)?\w+\.py"
    r"|elizainference/(_native\.pyi|py\.typed|libelizainference\.so)"
    rf"|elizainference/_native\.cpython-{sys.version_info.major}{sys.version_info.minor}-x86_64-linux-gnu\.so"
    r"|elizainference-[\d.]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/[A-Z_]+(\.txt|\.pybind11)?)"
)


@pytest.fixture(scope="module")
def archive():
    with zipfile.ZipFile(WHEEL) as archive:
        yield archive


def test_contents(archive):
    names = archive.namelist()
    assert [name for name in names if not ALLOWED.fullmatch(name)] == []
    for name in ("elizainference/py.typed", "elizainference/_native.pyi", "elizainference/cli/_main.py"):
        assert name in names
    assert len(names) == len(set(names))
    assert WHEEL.stat().st_size < BUDGET


def test_licenses(archive):
    """Of all that is compiled in."""
    texts = "\n".join(archive.read(name).decode() for name in archive.namelist() if "/licenses/" in name)
    for holder in ("llama.cpp", "libc++", "Niels Lohmann", "Wenzel Jakob"):
        assert holder in texts


def test_record(archive):
    (name,) = [name for name in archive.namelist() if name.endswith("RECORD")]
    rows = {path: (digest, size) for path, digest, size in csv.reader(archive.read(name).decode().splitlines())}
    assert set(rows) == set(archive.namelist())
    for path, (digest, size) in rows.items():
        if path == name:
            assert (digest, size) == ("", "")
            continue
        data = archive.read(path)
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={expected}", str(len(data)))


def test_tags(archive, tmp_path):
    compiled = [Path(archive.extract(name, tmp_path)) for name in archive.namelist() if name.endswith(".so")]
    assert len(compiled) == 2
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{platform_tag(compiled)}"
    assert WHEEL.name.endswith(f"-{tag}.whl")
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
    assert f"Tag: {tag}\n" in archive.read(name).decode()
    # What it is built for.
    assert platform_tag(compiled) == "manylinux_2_28_x86_64"
    # One that needs this machine's libstdc++, as all do that its own compiler makes, does not get it.
    library = runfile("libelizainference.so")
    assert platform_tag([library]).startswith("linux_") == (b"libstdc++.so" in library.read_bytes())


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The folder of programs of a new virtual environment with the wheel in it; nothing comes from the network."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    dependencies = folder / "wheels"
    dependencies.mkdir()
    for wheel in os.environ["DEPENDENCIES"].split():
        (dependencies / Path(wheel).name).symlink_to(runfile(wheel))
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--find-links", dependencies]
    subprocess.run([*command, WHEEL], check=True, env=environment(), timeout=LIMIT_S)
    return folder / "bin"


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [program, *arguments], capture_output=True, encoding="utf-8", env=environment(), timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command(installed):
    assert run(installed / "eliza", "--version").startswith("eliza 0.")
    bundle = str(models.bundle("tiny_llama_cycle"))
    assert run(installed / "eliza", "generate", "-b", bundle, "--raw", "abc", "--max-tokens", "5") == "defgh\n"
    assert "llama.cpp" in run(installed / "python", "-m", "elizainference", "backends", bundle)


def test_the_package(installed):
    script = (
        "import elizainference as eliza, sys\n"
        "with eliza.Engine(sys.argv[1], raw=True) as engine:\n"
        "    print(engine.generate('abc', max_tokens=3), engine.backend_report()['chosen'], eliza.__file__)\n"
    )
    out = run(installed / "python", "-c", script, str(models.bundle("tiny_llama_cycle")))
    text, chosen, file = out.split()
    assert (text, chosen) == ("def", "llama.cpp")
    # Not the one of this workspace.
    assert file.startswith(str(installed.parent))
