"""What prefix reuse saves: the time to the first token of a second turn, after a conversation of 2,000 tokens.

./bazelw run //bench:prefix [-- --json] [--rounds N]

Three ways to answer the second turn: everything again (the base), the same stream with reset_keep, and a new stream
with the first one's prompt_cache_key.
"""

from __future__ import annotations

import os
import statistics
import time

from bench import report
from tests.support import abi
from tests.support.runfile import runfile

CONVERSATION_TOKENS = 2000
SENTENCE = "And then the next day came, and the story went on with somebody else. "
QUESTION = "What happened then?"


def seconds_to_first_token(stream: abi.Stream, tokens: list[int]) -> float:
    """Of a prefill and one next."""
    start = time.perf_counter()
    stream.prefill(tokens)
    stream.next(tokens_cap=1)
    return time.perf_counter() - start


def round_of(context: abi.Context, conversation: list[int], question: list[int]) -> dict[str, float]:
    """Seconds for each way."""
    config = {"max_tokens": 4, "context_size": CONVERSATION_TOKENS + 100}
    seconds = {}
    with context.open(**config) as stream:
        seconds["all again"] = seconds_to_first_token(stream, conversation + question)
        stream.generate()
        assert stream.reset_keep(len(conversation)) == len(conversation)
        seconds["reset_keep"] = seconds_to_first_token(stream, question)
    with context.open(prompt_cache_key="bench", slot_id=0, **config) as stream:
        stream.prefill(conversation)
        stream.generate()
    with context.open(prompt_cache_key="bench", slot_id=0, **config) as stream:
        seconds["prompt_cache_key"] = seconds_to_first_token(stream, conversation + question)
    return seconds


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: %(default)s)")
    arguments = parser.parse_args()
    bundle = runfile(os.environ["MANIFEST"]).parent
    with abi.Context(bundle) as context:
        sentence = context.tokenize(SENTENCE, add_special=False)
        conversation = context.tokenize("") + sentence * (CONVERSATION_TOKENS // len(sentence) + 1)
        conversation = conversation[:CONVERSATION_TOKENS]
        question = context.tokenize(QUESTION, add_special=False)
        rounds = [round_of(context, conversation, question) for _ in range(arguments.rounds)]

    result = report.Report("prefix")
    base = statistics.median(seconds["all again"] for seconds in rounds)
    result.lower("time to first token, all again", base * 1000, "ms")
    for way in ("reset_keep", "prompt_cache_key"):
        ratio = statistics.median(seconds[way] / seconds["all again"] for seconds in rounds)
        result.lower(f"time to first token, {way}", ratio, "× all again", limit=0.1)
    result.print(arguments.json)


if __name__ == "__main__":
    main()
