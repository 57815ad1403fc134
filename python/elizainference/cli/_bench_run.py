"""The measurements of `eliza bench`."""

from __future__ import annotations

import statistics
import time
from typing import Any

from elizainference._engine import Engine
from elizainference._errors import InvalidArgument
from elizainference.cli import _host

_SENTENCE = "And then the next day came, and the story went on. "


class Bench:
    """A model, and how it is measured.

    Args:
      bundle: its directory.
      prompt: tokens that are read.
      decode: tokens that are generated.
      repeat: how often; one run more comes first, whose figures are not taken.
      options: of the engine.
    """

    def __init__(self, bundle: str, prompt: int, decode: int, repeat: int, options: dict[str, Any]) -> None:
        self._bundle = bundle
        self._prompt = prompt
        self._decode = decode
        self._repeat = repeat
        # Room for both, and no memory for more.
        self._options = {"context_size": prompt + decode + 64, **options}
        self._samples: dict[str, list[float]] = {}

    def run(self) -> dict[str, Any]:
        """The figures, in the form of the benches of this project; see docs/performance.md."""
        with Engine(self._bundle, **self._options) as engine:
            tokens = self._tokens(engine)
            started = time.perf_counter()
            # Open until the end: the model is loaded once, and measured while it is there.
            with engine.stream(tokens, max_tokens=1) as holder:
                opened = time.perf_counter() - started
                stats = holder.stats
                for run in range(self._repeat + 1):
                    self._measure(engine, tokens, counts=run > 0)
        self._add("open", opened * 1000)
        self._add("memory", _host.resident_mib()[1])
        return {
            "bench": "eliza",
            "bundle": self._bundle,
            "backend": stats.backend,
            "device": stats.device,
            "prompt": self._prompt,
            "decode": self._decode,
            "repeat": self._repeat,
            "metrics": {name: _metric(name, values) for name, values in self._samples.items()},
        }

    def _tokens(self, engine: Engine) -> list[int]:
        tokens = engine.tokenize(_SENTENCE)
        while len(tokens) < self._prompt:
            tokens += engine.tokenize(_SENTENCE, add_special=False)
        return tokens[: self._prompt]

    def _measure(self, engine: Engine, tokens: list[int], counts: bool) -> None:
        written = 0
        with engine.stream(tokens, max_tokens=self._decode) as stream:
            for chunk in stream:
                written += len(chunk.tokens)
            timings, stats = stream.timings, stream.stats
        if not counts:
            return
        if not timings.decoded_tokens:
            raise InvalidArgument(
                f"the model ended after {written} token{'' if written == 1 else 's'}: there is no decoding to measure"
            )
        self._add("prefill", self._prompt / timings.prefill)
        self._add("decode", timings.tokens_per_second)
        self._add("first token", timings.first_token * 1000)
        if stats.drafted_tokens:
            self._add("accepted", stats.accepted_tokens / stats.drafted_tokens)

    def _add(self, name: str, value: float) -> None:
        self._samples.setdefault(name, []).append(value)


# {metric: (unit, which is better)}
_METRICS = {
    "prefill": ("tokens/s", "higher"),
    "decode": ("tokens/s", "higher"),
    "first token": ("ms", "lower"),
    "accepted": ("of drafted", "higher"),
    "open": ("ms", "lower"),
    "memory": ("MiB", "lower"),
}


def _metric(name: str, samples: list[float]) -> dict[str, Any]:
    unit, better = _METRICS[name]
    return {
        "value": statistics.median(samples),
        "unit": unit,
        "limit": None,
        "better": better,
        "low": min(samples),
        "high": max(samples),
        "samples": samples,
    }
