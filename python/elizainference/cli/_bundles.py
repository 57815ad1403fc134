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
      BundleError: it is empty, the name of a model that is not fetched, or of none.
    """
    if not bundle:
        raise BundleError("the bundle is empty; give a directory, or the name of a fetched model")
    # What is wrong with a path, the library says.
    if os.path.exists(bundle) or os.sep in bundle:
        return bundle
    if bundle not in MODELS:
        raise BundleError(
            f"{bundle!r} is neither a directory here nor a model to fetch; `eliza bundle fetch` lists those"
        )
    folder = fetched(bundle)
    if not folder.is_dir():
        raise BundleError(f"{bundle} is not on this machine yet; `eliza bundle fetch {bundle}` brings it")
    return str(folder)
