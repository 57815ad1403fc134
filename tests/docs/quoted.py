"""The messages that docs/troubleshooting.md quotes."""

from __future__ import annotations

import re

from tests.docs.markdown import code_spans, rows, sections

BUILDING = "Building and fetching"
NOT_MESSAGES = "No message, but not what was expected"

# What takes another machine, or a model of a kind that is not generated; the sources are searched for it, as for all
# of BUILDING.
NOT_PRODUCED = {
    "the prompt is empty; give at least one token",
    "this CPU has no …, which this build of the library needs",
    "does not generate text token by token",
    "is compiled for the SoC …, and this device has …",
    "no GPU: none of its driver's libraries opens",
    "LiteRT-LM cannot load the model file … on the … (…)",
    "the model file … does not fit …",
    "the context was destroyed while this call was at work on it",
    "This is a fault of eliza's own: please report it",
    "… has … free, and … are needed; make room",
    "MLX failed (…); the stream's context is lost",
    "needs about … for its weights and a small context, where … of memory are available",
    "asks for …, but this process has MLX streams on …",
    "MLX was started in the process that this one was forked from",
}

# Messages of other programs: of glibc's loader, and of Bazel.
FOREIGN = {
    "version `GLIBC_…' not found",
    "version `CXXABI_…' not found",
    "Unable to find a CC toolchain using toolchain resolution",
}


def messages(document: str) -> dict[str, list[str]]:
    """{section: the messages in its table's first column}, with … where they hold a value."""
    found = {
        title: [message for first, *_ in rows(body) for message in code_spans(first)]
        for title, body in sections(document).items()
    }
    del found[NOT_MESSAGES]
    return found


def says(text: str, message: str) -> bool:
    """Whether a text is, or holds, a quoted message; each … may stand for anything."""
    at = 0
    for part in message.split("…"):
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def pattern(message: str, between: str) -> re.Pattern[str]:
    """What finds a quoted message in a text; `between` is what its … may stand for."""
    return re.compile(between.join(re.escape(part) for part in message.split("…")), re.DOTALL)
