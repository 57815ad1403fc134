"""Figures as a picture: an SVG of our own, or what Matplotlib makes of them where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
from html import escape
from pathlib import Path
from typing import Any

from elizainference._errors import InvalidArgument, NotSupported
from elizainference.cli._bench_report import figure

_WIDTH, _LABEL, _ROW, _MARGIN = 720, 190, 26, 16
_BAR = _WIDTH - _LABEL - 150
_COLOURS = ("#4c78a8", "#f58518")


def check(path: Path) -> None:
    """Whether there can be a plot, asked before anything is measured for it.

    Raises:
      InvalidArgument: the file's name ends in neither .svg nor .png, or its folder does not exist.
      NotSupported: a .png, and there is no Matplotlib.
    """
    if path.suffix not in (".svg", ".png"):
        raise InvalidArgument(f"the plot {str(path)!r} is of no known kind; its name must end in .svg or .png")
    if path.suffix == ".png" and importlib.util.find_spec("matplotlib") is None:
        raise NotSupported(f"the plot {str(path)!r} needs Matplotlib (pip install matplotlib); .svg needs nothing")
    if not path.parent.is_dir():
        raise InvalidArgument(f"the plot {str(path)!r} cannot be written: {str(path.parent)!r} is no folder")


def write(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draws the figures of one or two runs: a bar to each median, and a line from the lowest to the highest.

    `check` says what the file may be.
    """
    if path.suffix == ".svg":
        path.write_text(svg(results), encoding="utf-8")
    else:
        _png(results, path)


def svg(results: dict[str, dict[str, Any]]) -> str:
    """The picture as SVG."""
    names = list(dict.fromkeys(name for result in results.values() for name in result["metrics"]))
    parts: list[str] = []
    y = _MARGIN
    for at, title in enumerate(results):
        parts.append(f'<rect x="{_MARGIN}" y="{y}" width="12" height="12" fill="{_COLOURS[at]}"/>')
        parts.append(_text(_MARGIN + 20, y + 11, title))
        y += _ROW
    for name in names:
        rows = [(at, run["metrics"][name]) for at, run in enumerate(results.values()) if name in run["metrics"]]
        scale = _BAR / (max(metric["high"] for _, metric in rows) or 1.0)
        better = "more" if rows[0][1]["better"] == "higher" else "less"
        parts.append(_text(_MARGIN, y + 17, f"{name} ({better} is better)"))
        for at, metric in rows:
            parts += _bar(y, metric, scale, _COLOURS[at])
            y += _ROW
        y += _ROW // 3
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + _MARGIN}" '
        f'viewBox="0 0 {_WIDTH} {y + _MARGIN}" font-family="sans-serif" font-size="13">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _bar(y: int, metric: dict[str, Any], scale: float, colour: str) -> list[str]:
    left = _MARGIN + _LABEL
    low, value, high = (left + metric[key] * scale for key in ("low", "value", "high"))
    middle = y + 12
    return [
        f'<rect x="{left}" y="{y + 3}" width="{value - left:.1f}" height="18" fill="{colour}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}m0 -5v10M{low:.1f} {middle - 5}v10" stroke="black"/>',
        _text(high + 8, y + 17, f"{figure(metric['value'])} {metric['unit']}"),
    ]


def _text(x: float, y: float, text: str) -> str:
    # Control characters are none in XML.
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return f'<text x="{x:.1f}" y="{y}">{escape(shown)}</text>'


def _png(results: dict[str, dict[str, Any]], path: Path) -> None:
    names = list(dict.fromkeys(name for result in results.values() for name in result["metrics"]))
    drawing: Any = importlib.import_module("matplotlib.figure").Figure(
        figsize=(8, 0.9 * len(names) + 1), layout="constrained"
    )
    axes = drawing.subplots(len(names), 1, squeeze=False)[:, 0]
    for axis, name in zip(axes, names, strict=True):
        for at, (title, run) in enumerate(results.items()):
            if metric := run["metrics"].get(name):
                spread = [[metric["value"] - metric["low"]], [metric["high"] - metric["value"]]]
                axis.barh([at], [metric["value"]], xerr=spread, color=_COLOURS[at], label=title, capsize=3)
                axis.set_title(f"{name}, {metric['unit']}", fontsize=9, loc="left")
        axis.set_yticks([])
        axis.invert_yaxis()  # the first run above the second, as in the legend
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", fontsize=9)
    drawing.savefig(path)
