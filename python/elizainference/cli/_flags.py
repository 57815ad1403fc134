"""Options that several commands have: what they are called, and what they become in `Engine`.

    @engine_options(SAMPLING | RUNTIME)
    def generate(prompt: str, *, bundle: BundleOption, options: dict[str, Any]) -> None:

has, in the place of `options`, the flags of both groups, and gets those that were given, as keyword arguments of
`Engine`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from elizainference._errors import InvalidArgument
from elizainference.cli._bundles import fetched
from elizainference.cli._catalog import MODELS

_SAMPLING, _RUNTIME = "Sampling", "Model and device"


def _option(panel: str, metavar: str, help: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, show_default=False)


def _fetched_models(incomplete: str) -> list[str]:
    """Completes a BUNDLE; where none begins like this, the shell goes on with files."""
    return [name for name in MODELS if name.startswith(incomplete) and fetched(name).is_dir()]


_BUNDLE: dict[str, Any] = {
    "metavar": "BUNDLE",
    "help": "Directory of the model files, or a fetched model.",
    "autocompletion": _fetched_models,
}
BundleOption = Annotated[str, typer.Option("--bundle", "-b", **_BUNDLE)]
BundleArgument = Annotated[str, typer.Argument(**_BUNDLE)]
MaybeBundleArgument = Annotated[str | None, typer.Argument(**_BUNDLE)]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

# {option of Engine: its type on the command line}. What is not given stays Engine's default.
SAMPLING: dict[str, Any] = {
    "max_tokens": Annotated[int | None, _option(_SAMPLING, "N", "Most tokens to generate. 0: until the end.")],
    "temperature": Annotated[float | None, _option(_SAMPLING, "T", "0: the likeliest token each time, the default.")],
    "top_p": Annotated[float | None, _option(_SAMPLING, "P", "Sample among tokens of this probability together.")],
    "top_k": Annotated[int | None, _option(_SAMPLING, "K", "Sample among the K likeliest tokens. 0: off.")],
    "repeat_penalty": Annotated[float | None, _option(_SAMPLING, "R", "Above 1: repeat less. 1: off.")],
    "seed": Annotated[int | None, _option(_SAMPLING, "S", "Makes sampling repeatable.")],
    "stop": Annotated[list[str] | None, _option(_SAMPLING, "TEXT", "End at this text. Repeatable.")],
    "grammar": Annotated[str | None, _option(_SAMPLING, "GBNF", "What the answer has to match; @FILE reads a file.")],
    "json_schema": Annotated[
        str | None, _option(_SAMPLING, "JSON", "A JSON schema for the answer; @FILE reads a file.")
    ],
    "disable_thinking": Annotated[
        bool | None,
        typer.Option(
            "--no-thinking", help="Ask for an answer without thinking.", rich_help_panel=_SAMPLING, show_default=False
        ),
    ],
}
RUNTIME: dict[str, Any] = {
    "context_size": Annotated[int | None, _option(_RUNTIME, "N", "Tokens of prompt and answer. 0: the model's.")],
    "n_gpu_layers": Annotated[int | None, _option(_RUNTIME, "N", "Layers on the GPU. -1: all; 0, the default: none.")],
    "cache_type_k": Annotated[str | None, _option(_RUNTIME, "TYPE", "Type of the KV cache's keys, such as q8_0.")],
    "cache_type_v": Annotated[str | None, _option(_RUNTIME, "TYPE", "Type of its values.")],
    "drafter": Annotated[
        str | None, _option(_RUNTIME, "FILE", "A model that drafts tokens ahead: a path, also from the bundle.")
    ],
    "draft_max": Annotated[int | None, _option(_RUNTIME, "N", "Most tokens to draft per step; 4 with a drafter.")],
    "draft_min": Annotated[int | None, _option(_RUNTIME, "N", "Fewest tokens to draft per step.")],
}

_FROM_FILES = ("grammar", "json_schema")


def engine_options(shared: dict[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Puts the flags of `shared` in the place of a command's parameter `options`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(annotation=hints[name])
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "options"
        ]
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in shared.items()
        ]

        def run(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in shared}
            command(**arguments, options=_given(given))

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *flags]}
        return run

    return decorate


def _given(values: dict[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in values.items() if value is not None}
    for name in _FROM_FILES:
        value = str(options.get(name, ""))
        if value.startswith("@"):
            options[name] = _text_of(Path(value[1:]))
        elif os.path.isfile(value):
            flag = "--" + name.replace("_", "-")
            raise typer.BadParameter(f"{flag} is the name of a file; {flag} @{value} reads it")
    # A path on a command line is one from here; the library takes them from the bundle.
    if os.path.isfile(options.get("drafter", "")):
        options["drafter"] = os.path.abspath(options["drafter"])
    return options


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{str(file)!r} is no text in UTF-8: {error}") from None
