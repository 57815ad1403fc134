"""The library minds its own business: whatever else is in the process, and without a network or a file written."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import abi, models
from tests.support.isolated import isolated
from tests.support.runfile import runfile

BUNDLE = models.bundle("tiny_llama_cycle")
TEXT = models.alphabet("abc", 12)


def _compile(folder: Path, name: str, source: Path) -> Path:
    library = folder / name
    compiler = os.environ.get("CC") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-w", str(source), f"-o{library}", "-ldl"], check=True)
    return library


def _generate(*libraries: str | Path, count: int = 1, **environment: str) -> None:
    """Expects each of the `count` libraries that are used to say its text, and nothing else to be written."""
    command = [sys.executable, runfile("tests/isolation/generate.py"), BUNDLE, *map(str, libraries)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    assert done.stderr == ""
    assert done.stdout.splitlines() == [TEXT] * count


@pytest.fixture(scope="module")
def decoy(tmp_path_factory) -> Path:
    """A library that exports every C function of llama.cpp's in ours, each of which ends the process."""
    symbols = subprocess.run(["nm", abi.library_path()], check=True, capture_output=True, text=True).stdout
    names = sorted(set(re.findall(r" [tTwW] ((?:ggml|gguf|llama|common)_\w+)$", symbols, re.MULTILINE)))
    assert len(names) > 500, "the library has lost its symbol table"
    folder = tmp_path_factory.mktemp("decoy")
    source = folder / "decoy.c"
    source.write_text("void abort(void);\n" + "".join(f"void {name}(void) {{ abort(); }}\n" for name in names))
    return _compile(folder, "libllama.so", source)


class TestDecoy:
    """Another llama.cpp in the process, of another version."""

    def test_before_ours(self, decoy):
        _generate(f"decoy:{decoy}", abi.library_path())

    def test_after_ours(self, decoy, tmp_path):
        # Ours once more after it: nothing in ours has been bound to the decoy meanwhile.
        copy = shutil.copy(abi.library_path(), tmp_path / "copy.so")
        _generate(abi.library_path(), f"decoy:{decoy}", copy, count=2)

    def test_preloaded(self, decoy):
        _generate(abi.library_path(), LD_PRELOAD=f"{os.environ.get('LD_PRELOAD', '')}:{decoy}")

    def test_it_would_be_noticed(self, decoy):
        library = ctypes.CDLL(str(decoy))
        assert library.llama_decode and library.ggml_init and library.gguf_init_from_file


class TestCopies:
    """Two of us, as an application and its plug-in may bring."""

    @pytest.mark.parametrize("scope", ["", "global:"])
    def test_two_copies(self, tmp_path, scope):
        copy = shutil.copy(abi.library_path(), tmp_path / "libelizainference.so")
        _generate(f"{scope}{abi.library_path()}", f"{scope}{copy}", count=2)

    def test_one_copy_twice(self):
        _generate(abi.library_path(), abi.library_path(), count=2)


class TestBesideNumpy:
    """A BLAS with threads of its own in the process, and the C++ and Fortran runtimes that it brings."""

    def test_before_ours(self):
        _generate("import:numpy", abi.library_path())

    def test_after_ours(self):
        _generate(abi.library_path(), "import:numpy")

    def test_ours_has_gone(self):
        _generate(f"unload:{abi.library_path()}", "import:numpy", abi.library_path(), count=2)


class TestUnloaded:
    """What comes after a dlclose of ours."""

    def test_ours_again(self):
        path = abi.library_path()
        _generate(f"unload:{path}", f"unload:{path}", path, count=3)

    def test_another_copy_stays(self, tmp_path):
        copy = shutil.copy(abi.library_path(), tmp_path / "libelizainference.so")
        _generate(copy, f"unload:{abi.library_path()}", count=2)

    def test_a_decoy(self, decoy):
        _generate(f"decoy:{decoy}", f"unload:{abi.library_path()}", abi.library_path(), count=2)


def test_bound_at_load():
    _generate(abi.library_path(), LD_BIND_NOW="1")


def test_a_host_with_its_own_allocator(tmp_path):
    """One that gives memory which is not zero."""
    _generate(abi.library_path(), MALLOC_PERTURB_="165")


# What a program needs to reach out of itself.
_REACHES_OUT = re.compile(
    r"(socket|connect|bind|listen|accept4?|getaddrinfo|gethostbyname\w*|send(to|msg)?|fork|vfork|exec\w+|posix_spawnp?|"
    r"system|popen)"
)


def test_nothing_that_it_imports_reaches_out():
    output = subprocess.run(
        ["nm", "-D", "--undefined-only", abi.library_path()], check=True, capture_output=True, text=True
    ).stdout
    imports = {line.split()[-1].partition("@")[0] for line in output.splitlines()}
    assert "open" in imports or "open64" in imports
    assert [name for name in sorted(imports) if _REACHES_OUT.fullmatch(name)] == []


def test_no_file_is_written(tmp_path):
    """Nor a socket opened, nor a process started: watch.c ends the program then, and lists what is opened to write."""
    home = tmp_path / "home"
    home.mkdir()
    watch = _compile(tmp_path, "watch.so", runfile("tests/isolation/watch.c"))
    before = {path: path.stat().st_mtime_ns for path in BUNDLE.resolve().rglob("*")}
    _generate(
        abi.library_path(),
        LD_PRELOAD=f"{os.environ.get('LD_PRELOAD', '')}:{watch}",
        WATCH=str(tmp_path / "written"),
        HOME=str(home),
        XDG_CACHE_HOME=str(home),
        TMPDIR=str(home),
        PYTHONDONTWRITEBYTECODE="1",
    )
    written = (tmp_path / "written").read_text() if (tmp_path / "written").exists() else ""
    assert written == ""
    assert list(home.iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in BUNDLE.resolve().rglob("*")} == before


def test_a_file_that_is_written_would_be_noticed(tmp_path):
    watch = _compile(tmp_path, "watch.so", runfile("tests/isolation/watch.c"))
    environment = os.environ | {"LD_PRELOAD": str(watch), "WATCH": str(tmp_path / "written")}
    code = f"open({str(tmp_path / 'x')!r}, 'w'); import socket; socket.socket()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode == -6
    assert str(tmp_path / "x") in (tmp_path / "written").read_text()


@isolated
def test_without_a_network():
    """In a namespace that has none, where this user may make one; the imports above leave nothing to reach it with."""
    try:
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
    except PermissionError:
        os.environ["http_proxy"] = os.environ["https_proxy"] = "http://192.0.2.1:9"
    with abi.Context(BUNDLE) as context, context.open(max_tokens=12) as stream:
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == TEXT
