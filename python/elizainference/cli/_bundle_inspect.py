"""`eliza bundle inspect`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from elizainference._errors import BundleError, ElizaError
from elizainference.cli import _files, _headers
from elizainference.cli._bundles import resolve
from elizainference.cli._flags import JsonFlag
from elizainference.cli._litertlm import litertlm
from elizainference.cli._terminal import harmless, joined

# In a folder and all below it: somebody's home is no bundle.
_MOST_ENTRIES = 10_000


def inspect(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A bundle, or a model file.")], as_json: JsonFlag = False
) -> None:
    """Show what model files say about themselves: GGUF, .litertlm and safetensors."""
    place = Path(resolve(path))
    if not place.exists():
        raise BundleError(f"{str(place)!r} does not exist; give a bundle, or a model file")
    headers = {str(file): _header(file) for file in _model_files(place)}
    if not headers:
        raise BundleError(f"{str(place)!r} holds no model: no .gguf, .litertlm or .safetensors")
    if as_json:
        print(json.dumps(headers, ensure_ascii=False))
    else:
        _print(headers)
    broken = [name for name, header in headers.items() if "error" in header]
    if broken:
        raise BundleError(f"{len(broken)} of {len(headers)} files cannot be read; see above")


def _print(headers: dict[str, dict[str, Any]]) -> None:
    for at, (name, header) in enumerate(headers.items()):
        print(("\n" if at else "") + harmless(name))
        for line in _lines(header):
            print("  " + harmless(line.replace("\n", "\\n")))


def _model_files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    found: list[Path] = []
    seen: set[str] = set()
    looked_at = 0
    # Bundles are staged as links, and a link may lead back to where it is.
    for folder, folders, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        looked_at += len(folders) + len(names)
        if looked_at > _MOST_ENTRIES:
            raise BundleError(f"{str(place)!r} holds more than {_MOST_ENTRIES} files; give a bundle, or a model file")
        wanted = [name for name in names if name.endswith((".gguf", ".litertlm", ".safetensors"))]
        found += [Path(folder) / name for name in wanted if not name.startswith(".")]
    return sorted(found)


def _header(file: Path) -> dict[str, Any]:
    if not file.is_file():  # a pipe would be waited for
        return {"bytes": 0, "error": "no regular file, or a link to nothing"}
    size = {"bytes": os.path.getsize(file)}
    readers = {"gguf": _headers.gguf, "litertlm": litertlm, "safetensors": _headers.safetensors}
    try:
        kind = _headers.kind(file)
        if kind is None:
            raise BundleError("neither GGUF nor .litertlm nor safetensors")
        return size | readers[kind](file)
    except (ElizaError, OSError) as error:
        return size | {"error": str(error)}


def _lines(header: dict[str, Any]) -> list[str]:
    if "error" in header:
        return [f"{_files.megabytes(header['bytes'])}, {header['error']}"]
    facts = [
        header["format"],
        _files.megabytes(header["bytes"]),
        f"{_count(header['parameters'])} parameters" if "parameters" in header else "",
        ", ".join(f"{count} {name}" for name, count in header.get("types", {}).items()),
    ]
    lines = [joined(facts)]
    lines += [f"{key}: {_shown(value)}" for key, value in header["metadata"].items()]
    for section in header.get("sections", []):
        more = ", ".join(f"{key}: {value}" for key, value in section["metadata"].items())
        lines.append(joined([section["type"], _files.megabytes(section["bytes"]), more]))
    return lines


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**7 else f"{number / 1e6:,.0f} million"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['count']} items, {', '.join(map(str, value['first']))}, …"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
