"""`eliza generate`."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from elizainference._chat import Message
from elizainference._engine import Engine
from elizainference._stream import Stream
from elizainference.cli import _figures, _terminal
from elizainference.cli._bundles import resolve
from elizainference.cli._flags import RUNTIME, SAMPLING, BundleOption, JsonFlag, engine_options


@engine_options(SAMPLING | RUNTIME)
def generate(
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="What to say to the model; - or nothing: read it from stdin.")
    ] = None,
    *,
    bundle: BundleOption,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="Instructions before the prompt.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the prompt as it is: no chat template.")] = False,
    as_json: JsonFlag = False,
    options: dict[str, Any],
) -> None:
    """Answer a prompt. Tokens appear as they come; figures follow on stderr."""
    if system is not None and raw:
        raise typer.BadParameter("--system needs the chat template, which --raw leaves out")
    text = read_prompt(prompt)
    if not text and prompt in (None, "-"):
        raise typer.BadParameter("there is no prompt; give one, or pipe it in: nothing came through stdin")
    with Engine(resolve(bundle), raw=raw, **options) as engine:
        source: str | list[Message] = text
        if system is not None:
            source = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        if as_json:
            print(json.dumps(_figures.as_json(engine.generate(source)), ensure_ascii=False))
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
        answer.end()
    _terminal.note(_figures.figures(stream))


def read_prompt(argument: str | None) -> str:
    """A prompt as given, or what comes in through stdin."""
    if argument is not None and argument != "-":
        return argument
    if argument is None and sys.stdin.isatty():
        raise typer.BadParameter("there is no prompt; give one, or pipe it in")
    return sys.stdin.read()
