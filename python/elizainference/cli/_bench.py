"""`eliza bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from elizainference.cli import _bench_report, _plot, _terminal
from elizainference.cli._bench_run import Bench
from elizainference.cli._bundles import resolve
from elizainference.cli._flags import RUNTIME, JsonFlag, MaybeBundleArgument, engine_options


@engine_options(RUNTIME)
def bench(
    bundle: MaybeBundleArgument = None,
    *,
    prompt: Annotated[int, typer.Option(metavar="N", min=1, help="Tokens that are read.")] = 512,
    decode: Annotated[int, typer.Option(metavar="N", min=2, help="Tokens that are generated.")] = 128,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Measurements, after one that does not count.")] = 5,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Show B's figures over A's instead: two files that --json wrote."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the figures, too: .svg, or .png with Matplotlib.")
    ] = None,
    as_json: JsonFlag = False,
    options: dict[str, Any],
) -> None:
    """Measure how fast a model reads and writes here: the median of several runs, and how far they are apart."""
    if (bundle is None) == (compare is None):
        raise typer.BadParameter("give a BUNDLE to measure, or two files to --compare")
    if plot is not None:
        _plot.check(plot)
    if compare is not None:
        results = {path.name: _bench_report.read(path) for path in compare}
        if len(results) < 2:
            results = {str(path): _bench_report.read(path) for path in compare}
        if as_json:
            print(json.dumps(_bench_report.ratios(*results.values()), ensure_ascii=False))
        else:
            _terminal.print_table(_bench_report.comparison(results))
    else:
        assert bundle is not None
        result = Bench(resolve(bundle), prompt, decode, repeat, options).run()
        results = {str(result["bundle"]): result}
        if as_json:
            print(json.dumps(result, ensure_ascii=False))
        else:
            print(_terminal.harmless(_bench_report.title(result)))
            _terminal.print_table(_bench_report.table(result, _terminal.has_unicode()))
    if plot is not None:
        _plot.write(results, plot)
