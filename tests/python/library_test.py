"""Which library is loaded. A process has one, so each test has a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import models
from tests.support.runfile import runfile

_SCRIPT = """
import sys
import elizainference as eliza
from elizainference import _library
try:
    with eliza.Engine(sys.argv[1], raw=True) as engine:
        options = {"context_size": 64} if "context_size" in sys.argv else {}
        print(engine.generate("abc", max_tokens=3, **options))
        print(_library.load())
except eliza.ElizaError as error:
    print(type(error).__name__, error)
"""


def _run(*arguments: str, **variables: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", _SCRIPT, models.bundle("tiny_llama_cycle"), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=240,
    )
    return result.stdout.splitlines()


def _beside_the_package() -> Path:
    import elizainference

    return Path(elizainference.__file__).parent / "libelizainference.so"


def test_beside_the_package():
    assert _run() == ["def", str(_beside_the_package())]


def test_a_file_by_its_path(tmp_path):
    library = tmp_path / "other-name.so"
    library.symlink_to(_beside_the_package().resolve())
    assert _run(ELIZA_INFERENCE_LIBRARY=str(library)) == ["def", str(library)]


def test_a_folder(tmp_path):
    (tmp_path / "libelizainference.so").symlink_to(_beside_the_package().resolve())
    assert _run(ELIZA_INFERENCE_LIB_DIR=str(tmp_path)) == ["def", str(tmp_path / "libelizainference.so")]
    # The file's own variable goes first.
    text = _run(ELIZA_INFERENCE_LIB_DIR=str(tmp_path), ELIZA_INFERENCE_LIBRARY="/nowhere.so")
    assert text[0].startswith("LibraryError") and "/nowhere.so" in text[1]


def test_a_variable_decides_alone(tmp_path):
    for variables in ({"ELIZA_INFERENCE_LIBRARY": f"{tmp_path}/gone.so"}, {"ELIZA_INFERENCE_LIB_DIR": str(tmp_path)}):
        text = "\n".join(_run(**variables))
        assert text.startswith("LibraryError") and str(tmp_path) in text and "No such file" in text
        for variable in variables:
            assert variable in text


def test_not_a_library(tmp_path):
    (tmp_path / "text.so").write_text("text")
    assert "text.so" in "\n".join(_run(ELIZA_INFERENCE_LIBRARY=str(tmp_path / "text.so")))


def test_another_library():
    import ctypes.util

    text = "\n".join(_run(ELIZA_INFERENCE_LIBRARY=ctypes.util.find_library("m") or "libm.so.6"))
    assert text.startswith("LibraryError")


def test_abi_12():
    library = str(runfile(os.environ["ABI12_LIBRARY"]))
    assert _run(ELIZA_INFERENCE_LIBRARY=library) == ["def", library]
    # Its config ends before context_size.
    (text,) = _run("context_size", ELIZA_INFERENCE_LIBRARY=library)
    assert text.startswith("InvalidArgument context_size")
