"""`eliza backends`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from elizainference._engine import Backend, Engine
from elizainference._errors import BackendUnavailable
from elizainference.cli._terminal import harmless

if TYPE_CHECKING:
    from rich.table import Table


def backends(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="Directory of the model files.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Show which backends there are, which one answers for this bundle, and why."""
    with Engine(bundle) as engine:
        report = engine.backend_report()
        rows = engine.backends()
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        from rich.console import Console

        # In a pipe a row is a line, however long its reason.
        width = None if sys.stdout.isatty() else 10_000
        Console(file=sys.stdout, highlight=False, width=width).print(_table(rows))
    if report["error"]:
        raise BackendUnavailable(report["error"])


def _table(rows: list[Backend]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("backend", "compiled", "available", "serves", "rank", "chosen", "why"):
        table.add_column(column, justify="right" if column == "rank" else "left", overflow="fold")
    for row in rows:
        cells = [
            row.name,
            _answer(row.compiled),
            _answer(row.available),
            _answer(row.can_serve),
            "-" if row.rank is None else str(row.rank),
            _answer(row.chosen),
            row.reason,
        ]
        # As Text, for reasons quote paths and drivers, and brackets in them are not markup.
        table.add_row(*(Text(harmless(cell)) for cell in cells), style="bold" if row.chosen else None)
    return table


def _answer(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"
