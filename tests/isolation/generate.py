"""A host program: loads a library, and prints what its model says.

    generate.py BUNDLE ITEM...

Each item, in this order and in one process: the path of a library, or

    global:PATH     the library, loaded with RTLD_GLOBAL
    decoy:PATH      the same, and used for nothing
    unload:PATH     the library, used at once, and let go
    import:MODULE   a Python module with arrays (numpy, torch), used here and when everything has been said
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from pathlib import Path

from tests.support import abi

TOKENS = 12


def multiply(module: str) -> None:
    """Has the module's own BLAS, and its threads, multiply matrices."""
    ones = importlib.import_module(module).ones((256, 256))
    assert ((ones @ ones) == 256).all()


def use_and_unload(bundle: str, path: str) -> str:
    """What the library says before it goes."""
    library = abi.Library(path)
    with abi.Context(bundle, library) as context, context.open(max_tokens=TOKENS) as stream:
        stream.prefill(context.tokenize("abc"))
        text = stream.generate()
    unload = ctypes.CDLL(None).dlclose
    assert unload(ctypes.c_void_p(library._dll._handle)) == 0
    assert os.path.realpath(path) not in Path("/proc/self/maps").read_text(), "it has stayed"
    return text


def main() -> None:
    """The texts, a line each."""
    bundle, *items = sys.argv[1:]
    streams = []
    modules = []
    for item in items:
        kind, _, path = item.rpartition(":")
        if kind == "import":
            multiply(path)
            modules.append(path)
            continue
        if kind == "unload":
            print(use_and_unload(bundle, path))
            continue
        if kind:
            ctypes.CDLL(path, os.RTLD_GLOBAL | os.RTLD_NOW)
        if kind != "decoy":
            context = abi.Context(bundle, abi.Library(path))
            streams.append((context, context.open(max_tokens=TOKENS)))
    for context, stream in streams:
        stream.prefill(context.tokenize("abc"))
    texts = [""] * len(streams)
    for _ in range(TOKENS):  # in turns
        for i, (_, stream) in enumerate(streams):
            texts[i] += stream.next(tokens_cap=1).text
    for context, stream in streams:
        stream.close()
        context.close()
    for module in modules:
        multiply(module)
    for text in texts:
        print(text)


if __name__ == "__main__":
    main()
