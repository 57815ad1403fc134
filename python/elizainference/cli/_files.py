"""Large files: read in pieces, with a progress bar where somebody looks."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from elizainference._errors import ElizaError

_PIECE = 1 << 20


class Advance(Protocol):
    """Called with how many bytes more are done."""

    def __call__(self, count: int, /) -> object: ...


@contextmanager
def progress(label: str, total: int, done: int = 0) -> Iterator[Advance]:
    """A bar on stderr, where that is a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task(label, total=total or None, completed=done)

        def advance(count: int) -> None:
            bar.advance(task, count)
            bar.refresh()

        yield advance


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file."""
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def sha256(path: Path, label: str | None = None) -> str:
    """Of a file, in hexadecimal digits, with a progress bar."""
    digest = hashlib.sha256()
    with progress(label or path.name, os.path.getsize(path)) as advance:
        for piece in pieces(path):
            digest.update(piece)
            advance(len(piece))
    return digest.hexdigest()


def tree_sha256(path: Path, label: str | None = None) -> str:
    """Of a file; or of a folder, as `sha256sum` over its sorted files gives it, and `sha256sum` over that:

    cd FOLDER && find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum
    """
    if not path.is_dir():
        return sha256(path, label)
    files = sorted(
        (file for file in path.rglob("*") if file.is_file()), key=lambda file: os.fsencode(_within(file, path))
    )
    lines = [f"{sha256(file, _within(file, path))}  {_within(file, path)}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _within(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def require_space(folder: Path, size: int) -> None:
    """Raises an ElizaError where a file of this size does not fit into a folder."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise ElizaError(
            f"{folder} has {megabytes(free)} free, and {megabytes(size)} are needed; make room, or take a folder on "
            "another disk"
        )


def megabytes(size: int) -> str:
    """A size for people."""
    if size < 100_000:
        return f"{size:,} bytes"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.2f} GB"
