"""What a BUNDLE on the command line may be: a directory, or the name of a model that `eliza bundle fetch` brought."""

from __future__ import annotations

import os
from pathlib import Path

from elizainference._errors import BundleError
from elizainference.cli._catalog import MODELS


def fetched(name: str) -> Path:
    """Where a fetched model is, or will be: below $XDG_DATA_HOME, or ~/.local/share."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(data) / "elizainference" / "bundles" / name


def resolve(bundle: str) -> str:
    """The directory of a bundle.

    Raises:
      BundleError: it is empty, or the name of a model that is not fetched.
    """
    if not bundle:
        raise BundleError("the bundle is empty; give a directory, or the name of a fetched model")
    if bundle not in MODELS or os.path.isdir(bundle):
        return bundle
    folder = fetched(bundle)
    if not folder.is_dir():
        raise BundleError(f"{bundle} is not on this machine yet; `eliza bundle fetch {bundle}` brings it")
    return str(folder)
