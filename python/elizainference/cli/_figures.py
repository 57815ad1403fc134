"""A generation's figures, on a line."""

from __future__ import annotations

import dataclasses
from typing import Any

from elizainference._stream import Completion, Stream
from elizainference.cli._terminal import joined


def figures(stream: Stream) -> str:
    """Tokens, time to the first, tokens per second, backend."""
    stats, timings = stream.stats, stream.timings
    return joined(
        [
            f"{stats.generated_tokens} token{'' if stats.generated_tokens == 1 else 's'}",
            f"first after {timings.first_token:.2f} s",
            f"{timings.tokens_per_second:.1f} tokens/s" if timings.decoded_tokens else "",
            f"{stats.accepted_tokens} of {stats.drafted_tokens} drafted taken" if stats.drafted_tokens else "",
            f"{stats.backend} on {stats.device}" if stats.device else stats.backend,
            f"stopped by {stats.stop_reason}" if stats.stop_reason in ("max_tokens", "context_full") else "",
            f"ignored: {', '.join(stats.ignored_options)}" if stats.ignored_options else "",
        ]
    )


def totals(stream: Stream) -> str:
    """How full the KV cache is, and how much of the prompt was in it already."""
    stats = stream.stats
    return joined(
        [
            f"prompt of {stats.prompt_tokens} tokens, {stats.reused_tokens} of them read before",
            f"KV cache {stats.kv_used} of {stats.kv_capacity} tokens",
            f"prefill {stats.prefill_ms:.0f} ms",
            f"decode {stats.decode_ms:.0f} ms",
        ]
    )


def as_json(completion: Completion) -> dict[str, Any]:
    """A whole answer, for `--json`."""
    timings = completion.timings
    return {
        "text": completion.text,
        "tokens": list(completion.tokens),
        "stop_reason": completion.stop_reason,
        "backend": completion.backend,
        "device": completion.device,
        "timings": {**dataclasses.asdict(timings), "tokens_per_second": timings.tokens_per_second},
        "stats": dataclasses.asdict(completion.stats),
    }
