"""`eliza generate`."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Annotated, Any

import typer

from elizainference._chat import Message
from elizainference._engine import Engine
from elizainference._stream import Completion, Stream
from elizainference.cli import _terminal


def generate(
    prompt: Annotated[
        str | None, typer.Argument(help="What to say to the model; - or nothing: read it from stdin.")
    ] = None,
    *,
    bundle: Annotated[str, typer.Option(metavar="DIR", help="Directory of the model files.")],
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Most tokens to generate; 0: until the end.")] = 0,
    temperature: Annotated[float, typer.Option(metavar="T", help="0: the likeliest token each time.")] = 0.0,
    top_p: Annotated[float, typer.Option(metavar="P", help="Sample among tokens of this probability together.")] = 1.0,
    top_k: Annotated[int, typer.Option(metavar="K", help="Sample among the K likeliest tokens; 0: off.")] = 0,
    repeat_penalty: Annotated[float, typer.Option(metavar="R", help="Above 1: repeat less; 1: off.")] = 1.0,
    seed: Annotated[int | None, typer.Option(metavar="S", help="Makes sampling repeatable.")] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="Instructions before the prompt.")] = None,
    stop: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="End at this text. Repeatable.")] = None,
    n_gpu_layers: Annotated[int, typer.Option(metavar="N", help="Layers on the GPU; -1: all.")] = 0,
    context_size: Annotated[int, typer.Option(metavar="N", help="Tokens of prompt and answer; 0: the model's.")] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the prompt as it is: no chat template.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Answer a prompt. Tokens appear as they come; figures follow on stderr."""
    if system is not None and raw:
        raise typer.BadParameter("--system needs the chat template, which --raw leaves out")
    text = read_prompt(prompt)
    with Engine(
        bundle,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        repeat_penalty=repeat_penalty,
        seed=seed,
        stop=stop or [],
        n_gpu_layers=n_gpu_layers,
        context_size=context_size,
        raw=raw,
    ) as engine:
        source: str | list[Message] = text
        if system is not None:
            source = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        if as_json:
            print(json.dumps(_json(engine.generate(source)), ensure_ascii=False))
            return
        with engine.stream(source) as stream:
            write_answer(stream)


def write_answer(stream: Stream) -> None:
    """Writes an answer to stdout as it comes, then its figures to stderr."""
    answer = _terminal.AnswerWriter(sys.stdout)
    try:
        for chunk in stream:
            answer.write(chunk.text)
    finally:
        answer.end_line()
    _terminal.note(figures(stream))


def figures(stream: Stream) -> str:
    """The last line: tokens, time to the first, tokens per second, backend."""
    stats, timings = stream.stats, stream.timings
    return _terminal.joined(
        [
            f"{stats.generated_tokens} token{'' if stats.generated_tokens == 1 else 's'}",
            f"first after {timings.first_token:.2f} s",
            f"{timings.tokens_per_second:.1f} tokens/s" if timings.decoded_tokens else "",
            f"{stats.backend} on {stats.device}" if stats.device else stats.backend,
            f"stopped by {stats.stop_reason}" if stats.stop_reason in ("max_tokens", "context_full") else "",
            f"ignored: {', '.join(stats.ignored_options)}" if stats.ignored_options else "",
        ]
    )


def read_prompt(argument: str | None) -> str:
    """A prompt as given, or what comes in through stdin."""
    if argument is not None and argument != "-":
        return argument
    if argument is None and sys.stdin.isatty():
        raise typer.BadParameter("there is no prompt; give one, or pipe it in")
    return sys.stdin.read()


def _json(completion: Completion) -> dict[str, Any]:
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
