"""`eliza backends`."""

from __future__ import annotations

import json

from elizainference._engine import Engine
from elizainference._errors import BackendUnavailable
from elizainference._types import Backend
from elizainference.cli._bundles import resolve
from elizainference.cli._flags import BundleArgument, JsonFlag
from elizainference.cli._terminal import harmless, print_table, stdout


def backends(
    bundle: BundleArgument,
    as_json: JsonFlag = False,
) -> None:
    """Show which backends there are, which one answers for this bundle, and why."""
    with Engine(resolve(bundle)) as engine:
        report = engine.backend_report()
        rows = engine.backends()
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        show(rows)
    if report["error"]:
        raise BackendUnavailable(report["error"])


def show(rows: list[Backend]) -> None:
    """Prints the table of backends."""
    # Rich takes a while to import.
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    # A reason is a sentence: where it would become a column of single words, it gets lines of its own.
    narrow = console.width < 80
    columns = ["backend", "compiled", "available", "serves", "rank", "chosen"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column == "rank" else "left", no_wrap=True)
    if not narrow:
        table.add_column("why")
    for row in rows:
        # As Text, for reasons quote paths and drivers, and brackets in them are not markup.
        cells = [Text(harmless(cell)) for cell in _cells(row)]
        table.add_row(*cells[: len(table.columns)], style="bold" if row.chosen else None)
    print_table(table)
    if narrow:
        for row in rows:
            console.print(Text(harmless(f"\n{row.name}: {row.reason}")))


def _cells(row: Backend) -> list[str]:
    def answer(value: bool | None) -> str:
        return "-" if value is None else "yes" if value else "no"

    rank = "-" if row.rank is None else str(row.rank)
    asked = [answer(value) for value in (row.compiled, row.available, row.can_serve)]
    return [row.name, *asked, rank, answer(row.chosen), row.reason]
