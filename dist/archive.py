"""Writes an archive that depends on its contents and on nothing else.

    archive.py --out=FILE [--prefix=FOLDER] PATH=FILE ...

FILE is a .tar.gz, or else a zip file (.zip, .aar, .whl), that holds each FILE at PATH, below FOLDER. Entries are sorted,
belong to nobody, and are as old as a zip file can say: the same files give the same bytes on any machine. Arguments may
come from a file: @FILE, one a line.
"""

from __future__ import annotations

import argparse
import gzip
import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

# 1980-01-01, the first day of zip files, for both.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_TAR_TIME = 315532800


def write_tar_gz(out: Path, entries: dict[str, Path]) -> None:
    """Writes `entries`, {path in the archive: file}, as a gzipped tar file with the folders they lie in."""
    folders = {str(parent) for path in entries for parent in PurePosixPath(path).parents} - {"."}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted({*entries, *folders}):
            info = tarfile.TarInfo(path)
            info.mtime = _TAR_TIME
            if path in folders:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            else:
                data = entries[path].read_bytes()
                info.size, info.mode = len(data), 0o644
                tar.addfile(info, io.BytesIO(data))
    with out.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw, mtime=0) as packed:
        packed.write(buffer.getvalue())


def write_zip(out: Path, entries: dict[str, Path]) -> None:
    """Writes `entries`, {path in the archive: file}, as a zip file."""
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(entries):
            info = zipfile.ZipInfo(path, _ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, whatever this machine is
            info.external_attr = 0o100644 << 16
            archive.writestr(info, entries[path].read_bytes(), compresslevel=9)


def write(out: Path, entries: dict[str, Path]) -> None:
    """Writes `entries` in the format that the name of `out` says."""
    if out.name.endswith(".tar.gz"):
        write_tar_gz(out, entries)
    else:
        write_zip(out, entries)


def _entries(arguments: list[str], prefix: str) -> dict[str, Path]:
    entries: dict[str, Path] = {}
    for argument in arguments:
        path, _, file = argument.partition("=")
        path = str(PurePosixPath(prefix) / path)
        if not file or path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise SystemExit(f"{argument}: takes PATH=FILE, and PATH is relative and without ..")
        if path in entries:
            raise SystemExit(f"{path} is in the archive twice: {entries[path]} and {file}")
        entries[path] = Path(file)
    return entries


def main() -> None:
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--prefix", default="")
    parser.add_argument("entries", nargs="+", metavar="PATH=FILE")
    arguments = parser.parse_args()
    write(arguments.out, _entries(arguments.entries, arguments.prefix))


if __name__ == "__main__":
    main()
