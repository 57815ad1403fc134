"""Builds and runs a client the way its author would: the machine's own compiler, the header and the library."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.support import abi
from tests.support.runfile import runfile

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def compile_client(
    folder: Path,
    source: Path,
    compiler: str,
    options: list[str],
    library: Path | None = None,
    header: Path | None = None,
) -> Path:
    """Compiles and links `source`; returns the program.

    Args:
      folder: an empty folder; it becomes what a client unpacks: include/, lib/.
      source: the client's one source file.
      compiler: `cc` or `c++`; $CC and $CXX go before.
      options: of the compiler.
      library: to link with; the one at abi.library_path() by default.
      header: to compile with; the library's by default.
    """
    (folder / "include").mkdir()
    (folder / "lib").mkdir()
    shutil.copy(header or runfile("native/include/eliza-inference-ffi.h"), folder / "include" / "eliza-inference-ffi.h")
    shutil.copy(library or abi.library_path(), folder / "lib")
    program = folder / source.stem
    command = [
        os.environ.get({"cc": "CC", "c++": "CXX"}[compiler]) or compiler,
        *options,
        *WARNINGS,
        f"-I{folder}/include",
        str(source),
        f"-o{program}",
        f"-L{folder}/lib",
        "-lelizainference",
        f"-Wl,-rpath,{folder}/lib",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return program


def run(program: Path, *arguments: object) -> str:
    """Runs a client, which must succeed and write nothing but its result; returns that."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout!r}\n{done.stderr.decode()}"
    assert done.stderr == b""
    return done.stdout.decode()
