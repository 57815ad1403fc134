"""`eliza bundle create`."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from elizainference._errors import BundleError
from elizainference.cli import _files, _headers, _manifest, _terminal

_CLASSES = {"gguf": "llama-cpp", "litertlm": "litert-lm", "safetensors": "mlx"}

_FILE = {"exists": True, "readable": True, "metavar": "PATH"}


def create(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The bundle; must not exist yet, or be empty.")],
    model: Annotated[
        list[Path], typer.Option(help="A .gguf, .litertlm or MLX model; repeatable, one for each runtime.", **_FILE)
    ],
    drafter: Annotated[Path | None, typer.Option(help="A .gguf that drafts for it.", **_FILE)] = None,
    name: Annotated[str | None, typer.Option("--id", metavar="ID", help="Default: the folder's name.")] = None,
    context_size: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=2**31 - 1, help="Tokens of context it is made for.")
    ] = None,
    link: Annotated[bool, typer.Option("--link", help="Link the files rather than copy them.")] = False,
) -> None:
    """Make a bundle of model files: each in its place, and a manifest with their sha256."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BundleError(f"{str(folder)!r} exists; give a folder that does not, or an empty one")
    if drafter is not None and _headers.kind(drafter) != "gguf":
        raise BundleError(f"the drafter {str(drafter)!r} is no GGUF file")
    # Beside its place until it is complete.
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        files: dict[str, Any] = {"text": [], "mtp": []}
        for path in model:
            files["text"].append(_text_entry(path, partial, context_size, link))
        if drafter is not None:
            prefix = "" if drafter.name.startswith("drafter-") else "drafter-"
            files["mtp"].append(_entry(drafter, partial, f"mtp/{prefix}{drafter.name}", link))
        _manifest.write(partial, _rest(name or folder.resolve().name) | {"files": files})
        if folder.exists():
            folder.rmdir()
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _terminal.note(f"{folder}: {len(files['text']) + len(files['mtp'])} files")


def _rest(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "tier": "development",
        "version": "0",
        "publishedAt": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lineage": {},
        "kernels": {},
        "evals": {},
        "ramBudgetMb": {"min": 0, "recommended": 0},
        "defaultEligible": False,
    }


def _text_entry(path: Path, partial: Path, context_size: int | None, link: bool) -> dict[str, Any]:
    kind = _headers.kind(path)
    if kind is None:
        raise BundleError(
            f"{str(path)!r} is no model that a bundle can hold: a .gguf, a .litertlm, or a folder with config.json and "
            "*.safetensors"
        )
    extra: dict[str, Any] = {"runtimeClass": _CLASSES[kind]}
    if context_size is not None:
        extra["ctx"] = context_size
    return _entry(path, partial, f"text/{path.resolve().name}", link) | extra


def _entry(source: Path, partial: Path, path: str, link: bool) -> dict[str, Any]:
    target = partial / path
    if target.exists():
        raise BundleError(f"two files would be {path}; rename one")
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        target.symlink_to(source.resolve())
    elif source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
    return {"path": path, "sha256": _files.tree_sha256(target, source.name)}
