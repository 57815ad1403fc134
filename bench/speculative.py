"""What drafting gives: tokens per decode step, and the time against the same generation without a drafter.

./bazelw run //bench:speculative [-- --json] [--draft-max N] [--bundle DIR --drafter FILE]

By default the tiny MTP pair of the tests, whose speed says little (a step costs less than what surrounds it) and whose
acceptance says all. With a bundle and a drafter: a real pair.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench import report
from tests.support import abi, models

TOKENS = 200
PROMPT = "The quick brown fox jumps over the lazy dog. The quick brown fox"


def run(context: abi.Context, prompt: list[int], **config) -> tuple[str, list[abi.Step], float]:
    """The text, the steps, and the seconds of the decode."""
    with context.open(max_tokens=TOKENS, context_size=len(prompt) + TOKENS + 64, **config) as stream:
        stream.prefill(prompt)
        start = time.perf_counter()
        steps = stream.steps()
        seconds = time.perf_counter() - start
    return "".join(step.text for step in steps), steps, seconds


def measure(result: report.Report, label: str, bundle: Path, drafter: Path, draft_max: int) -> None:
    """Adds the figures of one pair."""
    with abi.Context(bundle) as context:
        prompt = context.tokenize(PROMPT)
        drafting = {"mtp_drafter_path": str(drafter), "draft_max": draft_max}
        run(context, prompt)
        plain, _, plain_seconds = run(context, prompt)
        run(context, prompt, **drafting)
        text, steps, seconds = run(context, prompt, **drafting)
    drafted = sum(step.drafted for step in steps)
    result.higher(f"{label}, accepted", sum(step.accepted for step in steps) / max(drafted, 1), "of drafted")
    result.higher(f"{label}, tokens per step", sum(len(step.tokens) for step in steps) / len(steps), "tokens")
    result.higher(f"{label}, speed", plain_seconds / seconds, "× without")
    result.higher(f"{label}, same text", float(text == plain), "", limit=1)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--draft-max", type=int, default=4, help="tokens drafted per step (default: %(default)s)")
    parser.add_argument("--bundle", type=Path, help="bundle of a target model")
    parser.add_argument("--drafter", type=Path, help="its drafter, a GGUF file")
    arguments = parser.parse_args()
    result = report.Report("speculative")
    if arguments.bundle and arguments.drafter:
        measure(result, arguments.bundle.name, arguments.bundle, arguments.drafter.resolve(), arguments.draft_max)
    else:
        for name, label in [("tiny_gemma4_mtp", "tiny MTP"), ("tiny_gemma4_mtp_wrong", "tiny MTP, wrong at times")]:
            measure(result, label, models.bundle(name), models.drafter(name), arguments.draft_max)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
