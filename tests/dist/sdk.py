"""A Linux SDK of //dist, unpacked."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from tests.support.runfile import runfile


def archive() -> Path:
    """The .tar.gz, which the test names in SDK."""
    return runfile(os.environ["SDK"])


def unpack(folder: Path) -> Path:
    """Unpacks it in `folder`, which is new or empty; returns the SDK's own folder."""
    with tarfile.open(archive()) as tar:
        tar.extractall(folder, filter="data")
    (sdk,) = folder.iterdir()
    return sdk
