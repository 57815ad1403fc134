"""Where libelizainference is looked for."""

from __future__ import annotations

import os
import sys

from elizainference import _native

_NAME = "libelizainference.dylib" if sys.platform == "darwin" else "libelizainference.so"

# Absolute from the start: a relative entry of sys.path would not outlive a change of directory.
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def load() -> str:
    """Loads the library, unless it is loaded already, and returns its path.

    ELIZA_INFERENCE_LIBRARY names the file, else ELIZA_INFERENCE_LIB_DIR its folder, else it is the one beside this
    package. A variable that is set decides alone: running another library than the one asked for would hide the
    mistake.

    Raises:
      ElizaError: no library could be loaded; the message names each path tried, and why it failed.
    """
    if file := os.environ.get("ELIZA_INFERENCE_LIBRARY"):
        paths = [os.path.abspath(file)]
    elif folder := os.environ.get("ELIZA_INFERENCE_LIB_DIR"):
        paths = [os.path.join(os.path.abspath(folder), _NAME)]
    else:
        paths = [os.path.join(_PACKAGE, _NAME)]
    return _native.load(paths)
