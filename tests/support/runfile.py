"""Where the files are that a target names in its `data`."""

from __future__ import annotations

import os
from pathlib import Path

from python.runfiles import runfiles


def _create() -> runfiles.Runfiles:
    """The runfiles as a folder of links where there is one: a manifest, which `bazel run` prefers, lists no folders."""
    manifest = Path(os.environ.get("RUNFILES_MANIFEST_FILE", ""))
    folder = manifest.parent if manifest.name == "MANIFEST" else Path(str(manifest).removesuffix("_manifest"))
    return runfiles.Create({"RUNFILES_DIR": str(folder)} if manifest.is_file() and folder.is_dir() else os.environ)


_RUNFILES = _create()


def runfile(path: str) -> Path:
    """The file, or folder of files, at `path`.

    Args:
      path: from this workspace's root ("tests/models/x"), or as $(rlocationpath) gives it ("_main/tests/models/x",
        "some_repository/x"); an absolute path is returned as it is.

    Raises:
      FileNotFoundError: it is not among the runfiles: name its target in `data`.
    """
    for candidate in (path, f"_main/{path}"):
        found = path if os.path.isabs(path) else _RUNFILES.Rlocation(candidate)
        if found and os.path.exists(found):
            return Path(found)
    raise FileNotFoundError(f"{path} is not in the runfiles; name its target in `data`")
