"""A bundle's manifest, as far as the command reads and writes it; the library's own reader is native/bundle."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from elizainference._errors import BundleError

NAME = "eliza-1.manifest.json"

_MAX_BYTES = 4 << 20  # as for the library


class Entry(NamedTuple):
    """A file that the manifest names."""

    role: str
    """"text", "mtp", …"""
    path: str
    sha256: str | None


def read(bundle: Path) -> dict[str, Any]:
    """The manifest of a bundle directory.

    Raises:
      BundleError: there is none, or it is no JSON object.
    """
    if not bundle.is_dir():
        problem = "is no directory" if bundle.exists() else "does not exist"
        raise BundleError(f"the bundle {str(bundle)!r} {problem}; give the directory that holds {NAME}")
    path = bundle / NAME
    if not path.exists():
        raise BundleError(f"{path} does not exist; `eliza bundle create` writes one")
    if not path.is_file() or path.stat().st_size > _MAX_BYTES:
        raise BundleError(f"{path} is no regular file of at most {_MAX_BYTES >> 20} MiB, as manifests are")
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise BundleError(f"{path}: files is missing; it must be an object of lists")
    return manifest


def entries(manifest: dict[str, Any]) -> list[Entry]:
    """The files that it names.

    Raises:
      BundleError: an entry has no path, or one that leads out of the bundle.
    """
    found = []
    for role, files in manifest["files"].items():
        for at, file in enumerate(files if isinstance(files, list) else []):
            path = file.get("path") if isinstance(file, dict) else None
            if not isinstance(path, str) or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise BundleError(f"{NAME}: /files/{role}/{at}/path is {path!r}; it must be a path inside the bundle")
            digest = file.get("sha256")
            found.append(Entry(role, path, digest.lower() if isinstance(digest, str) else None))
    return found


def write(bundle: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a bundle directory."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (bundle / NAME).write_text(text + "\n", encoding="utf-8")
