"""Streams tokens from an on-device language model.

    import elizainference as eliza

    with eliza.Engine("path/to/bundle") as engine:
        for chunk in engine.stream("What is the capital of France?"):
            print(chunk.text, end="", flush=True)

`Engine` is where to start; docs/python.md is the guide.
"""

from elizainference._chat import Message
from elizainference._engine import Backend, EndOfTurn, Engine
from elizainference._errors import (
    BackendUnavailable,
    BundleError,
    Cancelled,
    ElizaError,
    InvalidArgument,
    LibraryError,
    NotSupported,
    OutOfMemory,
)
from elizainference._options import Options
from elizainference._session import Chat
from elizainference._stream import Chunk, Completion, Stats, Stream, Timings
from elizainference._version import __version__

__all__ = [
    "Backend",
    "BackendUnavailable",
    "BundleError",
    "Cancelled",
    "Chat",
    "Chunk",
    "Completion",
    "ElizaError",
    "EndOfTurn",
    "Engine",
    "InvalidArgument",
    "LibraryError",
    "Message",
    "NotSupported",
    "Options",
    "OutOfMemory",
    "Stats",
    "Stream",
    "Timings",
    "__version__",
]
