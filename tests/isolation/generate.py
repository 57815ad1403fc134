"""A host program: loads a library, and prints what its model says.

    generate.py BUNDLE LIBRARY...

Each library, in this order and in one process; `global:` before a path loads it with RTLD_GLOBAL, `decoy:` loads it so
and uses it for nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys

from tests.support import abi


def main() -> None:
    """The texts, a line each."""
    bundle, *libraries = sys.argv[1:]
    streams = []
    for library in libraries:
        kind, _, path = library.rpartition(":")
        if kind:
            ctypes.CDLL(path, os.RTLD_GLOBAL | os.RTLD_NOW)
        if kind != "decoy":
            context = abi.Context(bundle, abi.Library(path))
            streams.append((context, context.open(max_tokens=12)))
    for context, stream in streams:
        stream.prefill(context.tokenize("abc"))
    texts = [""] * len(streams)
    for _ in range(12):  # in turns
        for i, (_, stream) in enumerate(streams):
            texts[i] += stream.next(tokens_cap=1).text
    for context, stream in streams:
        stream.close()
        context.close()
    print("\n".join(texts))


if __name__ == "__main__":
    main()
