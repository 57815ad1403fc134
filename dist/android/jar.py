"""Compiles Java sources into a jar that depends on them and on nothing else.

    jar.py --javac=PROGRAM --out=FILE SOURCE...

For Java 8, which every Android build takes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from dist import archive

# Not "options", which says that Java 8 is old.
_OPTIONS = ["--release", "8", "-encoding", "UTF-8", "-Xlint:all,-options", "-Werror", "-g:source,lines"]


def main() -> None:
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--javac", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([arguments.javac, *_OPTIONS, "-d", folder, *arguments.sources])
        if done.returncode != 0:
            sys.exit(done.returncode)
        classes = {str(file.relative_to(folder)): file for file in Path(folder).rglob("*.class")}
        archive.write_zip(arguments.out, classes)


if __name__ == "__main__":
    main()
