"""Streams tokens from an on-device language model.

    import elizainference as eliza

    with eliza.Engine("path/to/bundle") as engine:
        for chunk in engine.stream("What is the capital of France?"):
            print(chunk.text, end="", flush=True)

`Engine` is where to start; docs/python.md is the guide.
"""

from typing import TYPE_CHECKING, Any

from elizainference._chat import Message
from elizainference._engine import Engine
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
from elizainference._types import Backend, EndOfTurn, Vector, VerifierEvent
from elizainference._version import __version__

if TYPE_CHECKING:
    from elizainference._async import AsyncChat, AsyncStream

__all__ = [
    "AsyncChat",
    "AsyncStream",
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
    "Vector",
    "VerifierEvent",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # asyncio takes a while to import, and only coroutines need it.
    if name in ("AsyncChat", "AsyncStream"):
        from elizainference import _async

        return getattr(_async, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
