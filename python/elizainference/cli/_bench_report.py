"""What `eliza bench` shows: tables of figures, and of the ratios of two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elizainference._errors import InvalidArgument
from elizainference.cli._terminal import harmless, joined

if TYPE_CHECKING:
    from rich.table import Table

_BAR = 20


def title(result: dict[str, Any]) -> str:
    """What was measured."""
    return joined(
        [
            str(result["bundle"]),
            f"{result['backend']} on {result['device']}",
            f"{result['prompt']} tokens read, {result['decode']} written",
            f"median of {result['repeat']}",
        ]
    )


def table(result: dict[str, Any], unicode: bool) -> Table:
    """The figures of a run: median, smallest and largest, and where the median is between them."""
    rows = _table("", "median", "unit", "low", "high", "")
    metrics = result["metrics"]
    for name, metric in metrics.items():
        one = len(metric["samples"]) == 1
        spread = ["", "", ""] if one else [figure(metric["low"]), figure(metric["high"]), _spread(metric, unicode)]
        rows.add_row(name, figure(metric["value"]), metric["unit"], *spread)
    return rows


def ratios(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The second run's figures over the first's, of those that both have."""
    found = {}
    for name, a in first["metrics"].items():
        b = second["metrics"].get(name)
        if b is None or not a["value"]:
            continue
        measured = len(a["samples"]) > 1 and len(b["samples"]) > 1
        apart = measured and (a["high"] < b["low"] or b["high"] < a["low"])
        found[name] = {
            "a": a["value"],
            "b": b["value"],
            "unit": a["unit"],
            "ratio": b["value"] / a["value"],
            "better": a["better"],
            "verdict": _verdict(a, b) if apart else "same",
        }
    return found


def comparison(results: dict[str, dict[str, Any]]) -> Table:
    """The ratios, for people. "same": the figures overlap, or are single ones."""
    from rich.text import Text

    (a, first), (b, second) = results.items()
    rows = _table("", a, b, "unit", "ratio", "")
    for name, row in ratios(first, second).items():
        cells = [name, figure(row["a"]), figure(row["b"]), row["unit"], f"{row['ratio']:.3f}", row["verdict"]]
        # As Text, for names come from files, and brackets in them are not markup.
        rows.add_row(*(Text(harmless(cell)) for cell in cells))
    return rows


def read(path: Path) -> dict[str, Any]:
    """A result that `--json` wrote.

    Raises:
      InvalidArgument: the file is none.
    """
    try:
        result: dict[str, Any] = json.loads(path.read_bytes())
        metrics = {str(name): _metric(metric) for name, metric in result["metrics"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidArgument(f"{str(path)!r} is no result of `eliza bench --json`: {error!r}") from None
    return result | {"metrics": metrics}


def _metric(metric: dict[str, Any]) -> dict[str, Any]:
    """What is used of a metric, of the types that it is used as."""
    figures = {name: float(metric[name]) for name in ("value", "low", "high")}
    return {
        **figures,
        "unit": str(metric["unit"]),
        "better": str(metric["better"]),
        "samples": [float(sample) for sample in metric["samples"]],
    }


def figure(value: float) -> str:
    """Three digits or more."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _verdict(a: dict[str, Any], b: dict[str, Any]) -> str:
    more = float(b["value"]) > float(a["value"])
    return "better" if more == (a["better"] == "higher") else "worse"


def _spread(metric: dict[str, Any], unicode: bool) -> str:
    """The range from 0 to the highest: filled to the lowest, then where runs are, with the median marked."""
    scale = _BAR / metric["high"] if metric["high"] else 0.0
    low, middle, high = (round(metric[key] * scale) for key in ("low", "value", "high"))
    full, part, mark = ("█", "▒", "┃") if unicode else ("#", "=", "|")
    bar: str = full * low + part * (high - low)
    at = min(middle, len(bar) - 1)
    return bar[:at] + mark + bar[at + 1 :]


def _table(*columns: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, pad_edge=False, header_style="bold")
    for at, column in enumerate(columns):
        numeric = at > 0 and column not in ("unit", "")
        rows.add_column(Text(harmless(column)), justify="right" if numeric else "left", no_wrap=True)
    return rows
