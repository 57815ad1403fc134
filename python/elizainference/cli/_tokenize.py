"""`eliza tokenize`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from elizainference._engine import Engine
from elizainference.cli._bundles import resolve
from elizainference.cli._flags import BundleOption, JsonFlag
from elizainference.cli._generate import read_prompt
from elizainference.cli._terminal import harmless


def tokenize(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; -: read it from stdin.")],
    *,
    bundle: BundleOption,
    special: Annotated[bool, typer.Option("--special", help="Read <|im_start|> and the like as tokens.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the tokens of a text: one per line, its id and its text."""
    with Engine(resolve(bundle)) as engine:
        tokens = engine.tokenize(read_prompt(text), parse_special=special)
        pieces = [engine.detokenize([token], unparse_special=True) for token in tokens]
    if as_json:
        print(json.dumps({"tokens": tokens, "pieces": pieces}, ensure_ascii=False))
        return
    for token, piece in zip(tokens, pieces, strict=True):
        print(f"{token:>8}  {harmless(piece)!r}")
