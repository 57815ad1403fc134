"""What an engine answers with, besides text."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Backend:
    """A backend in the selection for a bundle. None means that it was not asked."""

    name: str
    compiled: bool
    """In this build of the library."""
    available: bool | None
    """What it depends on is there on this host."""
    can_serve: bool | None
    """The bundle holds a model in its format."""
    rank: int | None
    """The highest wins; llama.cpp is 0."""
    chosen: bool
    reason: str
    """Why it is chosen, or not."""


class EndOfTurn(NamedTuple):
    """How likely a text ends here: what `Engine.eot_score` returns."""

    probability: float
    """Of the token that ends a turn, from 0 to 1."""
    top_token: int
    """The likeliest token, and its probability."""
    top_probability: float


class VerifierEvent(NamedTuple):
    """One step of speculative decoding. Indices count generated tokens from 0."""

    accepted: list[int]
    """Drafted tokens that the model took."""
    rejected_from: int
    """Indices of the first and the last drafted token that it did not take; -1 and -1 where it took all."""
    rejected_to: int
    corrected: list[int]
    """What it says in the place of the first of them."""


class Vector(Protocol):
    """Floats: a NumPy array where NumPy is installed, else a list."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[float]: ...
    def __getitem__(self, at: int, /) -> float: ...


def vector(values: list[float]) -> Vector:
    """`values` as a NumPy array of float32, where NumPy is installed."""
    if importlib.util.find_spec("numpy") is None:
        return values
    numpy: Any = importlib.import_module("numpy")
    array: Vector = numpy.asarray(values, dtype=numpy.float32)
    return array
