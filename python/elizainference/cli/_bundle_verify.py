"""`eliza bundle verify`."""

from __future__ import annotations

import json
from pathlib import Path

from elizainference._errors import BundleError
from elizainference.cli import _files, _manifest
from elizainference.cli._bundles import resolve
from elizainference.cli._flags import BundleArgument, JsonFlag
from elizainference.cli._terminal import harmless


def verify(bundle: BundleArgument, as_json: JsonFlag = False) -> None:
    """Check that every file is what the bundle's manifest says, by its sha256.

    Exit code 1 where one is missing or differs, or has no sha256 to check.
    """
    folder = Path(resolve(bundle))
    files = _manifest.entries(_manifest.read(folder))
    if not files:
        raise BundleError(f"{folder / _manifest.NAME} names no files: there is nothing to check")
    results = {entry.path: _check(folder, entry) for entry in files}
    bad = [path for path, result in results.items() if result != "ok"]
    if as_json:
        print(json.dumps({"bundle": str(folder), "ok": not bad, "files": results}, ensure_ascii=False))
    else:
        width = max(map(len, results.values()))
        for path, result in results.items():
            print(f"{result:<{width}}  {harmless(path)}")
    if bad:
        raise BundleError(f"{len(bad)} of {len(results)} files are not what the manifest says; download them again")


def _check(folder: Path, entry: _manifest.Entry) -> str:
    path = folder / entry.path
    if not path.exists():
        return "missing"
    if not path.is_file() and not path.is_dir():  # a pipe would be waited for
        return "no file"
    if entry.sha256 is None:
        return "no sha256"
    return "ok" if _files.tree_sha256(path, entry.path) == entry.sha256 else "differs"
