"""The errors of this package. Each carries the message and the status of the library (`ELIZA_ERR_*`)."""

from __future__ import annotations


class ElizaError(Exception):
    """Something failed. The message says what was wrong, with which value, and what to do.

    Attributes:
      status: the library's negative status code, such as -4 where a runtime failed.
    """

    status = -4  # ELIZA_ERR_FFI_FAULT

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status


class NotSupported(ElizaError):
    """This build of the library, this backend or this model lacks the feature."""

    status = -1  # ELIZA_ERR_NOT_IMPLEMENTED


class InvalidArgument(ElizaError, ValueError):
    """An option, a message, a token or the order of calls is wrong."""

    status = -2  # ELIZA_ERR_INVALID_ARG


class BundleError(ElizaError):
    """The bundle, or a file in it, is missing, damaged or ambiguous."""

    status = -3  # ELIZA_ERR_BUNDLE_INVALID


class OutOfMemory(ElizaError, MemoryError):
    """Memory ran out, or what was asked for would not fit."""

    status = -5  # ELIZA_ERR_OOM


class LibraryError(ElizaError, ImportError):
    """libelizainference could not be loaded, or is not the one this package speaks to."""

    status = -6  # ELIZA_ERR_ABI_MISMATCH


class Cancelled(ElizaError):
    """The stream was cancelled before its generation ended."""

    status = -7  # ELIZA_ERR_CANCELLED


class BackendUnavailable(ElizaError):
    """The backend that ELIZA_LLM_BACKEND asks for is unknown, not available here, or cannot serve the bundle."""


_BY_STATUS = {
    cls.status: cls for cls in (NotSupported, InvalidArgument, BundleError, OutOfMemory, LibraryError, Cancelled)
}


def from_status(status: int, message: str) -> ElizaError:
    """The exception of a status; _native raises what this returns."""
    return _BY_STATUS.get(status, ElizaError)(message, status)
