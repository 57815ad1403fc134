"""What every bench prints: a table, or with --json one object.

    {"bench": NAME, "metrics": {LABEL: {"value": x, "unit": "…", "limit": y or null, "better": "higher"|"lower"}}}

A limit is what the project holds itself to (docs/performance.md). A bench only reports: where a figure misses its limit
it says so and still exits with 0, for a figure is a machine's as much as the code's.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Metric:
    """One figure."""

    value: float
    unit: str
    limit: float | None
    better: str

    @property
    def holds(self) -> bool:
        """Whether the value keeps to the limit."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.better == "higher" else self.value <= self.limit


class Report:
    """The figures of one bench."""

    def __init__(self, bench: str) -> None:
        self.bench = bench
        self.metrics: dict[str, Metric] = {}

    def lower(self, label: str, value: float, unit: str, limit: float | None = None) -> None:
        """Adds a figure of which less is better; `limit` is the most it may be."""
        self.metrics[label] = Metric(value, unit, limit, "lower")

    def higher(self, label: str, value: float, unit: str, limit: float | None = None) -> None:
        """Adds a figure of which more is better; `limit` is the least it may be."""
        self.metrics[label] = Metric(value, unit, limit, "higher")

    def to_json(self) -> str:
        """The object above, on one line."""
        return json.dumps(
            {"bench": self.bench, "metrics": {k: asdict(m) for k, m in self.metrics.items()}}, ensure_ascii=False
        )

    def to_table(self) -> str:
        """The same for people."""
        rows = [("", "value", "unit", "limit", "")]
        for label, metric in self.metrics.items():
            sign = "≥" if metric.better == "higher" else "≤"
            limit = "" if metric.limit is None else f"{sign} {_figure(metric.limit)}"
            rows.append((label, _figure(metric.value), metric.unit, limit, "" if metric.holds else "missed"))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d:<{widths[3]}}  {e}".rstrip()
            for a, b, c, d, e in rows
        ]
        return "\n".join([self.bench, *lines])

    def print(self, as_json: bool) -> None:
        """Prints the one or the other."""
        print(self.to_json() if as_json else self.to_table())


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of the options that all benches have."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    return result
