"""mypy --strict finds nothing in the package, and its stub of the extension is what the extension is."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import elizainference
from elizainference import _native

PACKAGE = Path(elizainference.__file__).parent


def test_strict(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version=3.12", f"--cache-dir={tmp_path}"]
    command += ["--no-error-summary", "--package=elizainference"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MYPYPATH": os.pathsep.join(_import_paths())},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def _import_paths() -> list[str]:
    """Where our package and what it imports is. Python's own library, and what mypy has its own stubs for, it knows."""
    paths = [path for path in sys.path if path and not path.startswith((sys.prefix, sys.base_prefix))]
    known = ("typing_extensions.py", "mypy_extensions.py")
    return [path for path in paths if not any(os.path.exists(os.path.join(path, name)) for name in known)]


def _signatures(classes: dict[str, object]) -> dict[str, set[str]]:
    return {name: {n for n in vars(cls) if not n.startswith("_")} for name, cls in classes.items()}


def test_the_stub_names_what_there_is():
    stub: dict = {}
    # The stub is a program that does nothing, once its annotations are text.
    source = "from __future__ import annotations\n" + (PACKAGE / "_native.pyi").read_text()
    exec(compile(source, "_native.pyi", "exec"), stub)
    theirs = {name: value for name, value in vars(_native).items() if inspect.isclass(value)}
    ours = {name: stub[name] for name in theirs}
    assert _signatures(ours) == _signatures(theirs)
    functions = {name for name, value in vars(_native).items() if callable(value) and not inspect.isclass(value)}
    assert functions <= stub.keys()
