"""`eliza bench`: figures that add up, comparisons that do not overstate, and plots."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import elizainference as eliza
import pytest
from elizainference.cli import _bench_report, _plot, main

from tests.support import models

CYCLE = str(models.bundle("tiny_llama_cycle"))
SMALL = ("--prompt", "32", "--decode", "8", "--repeat", "3")


@pytest.fixture
def bench(capfd):
    def bench(*arguments: str) -> tuple[int, str, str]:
        return main(["bench", *arguments]), *capfd.readouterr()

    return bench


def metric(*samples: float, better: str = "higher") -> dict:
    ordered = sorted(samples)
    middle = ordered[len(ordered) // 2]
    return {
        "value": middle,
        "unit": "x",
        "limit": None,
        "better": better,
        "low": ordered[0],
        "high": ordered[-1],
        "samples": list(samples),
    }


def test_figures(bench):
    code, out, err = bench(CYCLE, *SMALL, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert (result["backend"], result["device"], result["repeat"]) == ("llama.cpp", "cpu", 3)
    metrics = result["metrics"]
    assert set(metrics) == {"prefill", "decode", "first token", "open", "memory"}
    for name, each in metrics.items():
        assert 0 < each["low"] <= each["value"] <= each["high"], name
        assert len(each["samples"]) == (1 if name in ("open", "memory") else 3)


def test_a_table(bench):
    code, out, _ = bench(CYCLE, *SMALL)
    assert code == 0 and "prefill" in out and "tokens/s" in out and "median of 3" in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_a_spread_is_drawn():
    """From 0 to the highest: filled to the lowest, then where runs are, with the median marked."""
    assert _bench_report._spread(metric(10, 15, 20), unicode=True) == "█" * 10 + "▒" * 5 + "┃" + "▒" * 4
    assert _bench_report._spread(metric(10, 15, 20), unicode=False) == "#" * 10 + "=" * 5 + "|" + "=" * 4
    assert _bench_report._spread(metric(20, 20, 20), unicode=False) == "#" * 19 + "|"
    assert _bench_report._spread(metric(0, 0), unicode=False) == "|"


def test_a_drafter(bench):
    drafter = str(models.text_model("tiny_llama_cycle"))
    assert "accepted" in json.loads(bench(CYCLE, *SMALL, "--drafter", drafter, "--json")[1])["metrics"]


def test_a_model_that_ends_at_once(bench):
    # The prompt begins with "And"; after d this model rings the bell, and ends.
    bundle = str(models.bundle("tiny_llama_escape"))
    with eliza.Engine(bundle) as engine:
        prompt = len(engine.tokenize("And"))
    code, out, err = bench(bundle, "--prompt", str(prompt), "--decode", "8", "--repeat", "1")
    assert (code, out) == (1, "") and "there is no decoding to measure" in err


def test_comparison(bench, tmp_path):
    a = {"metrics": {"decode": metric(10, 11, 12), "first token": metric(5, 6, 7, better="lower"), "a": metric(1)}}
    b = {"metrics": {"decode": metric(20, 21, 22), "first token": metric(6, 7, 8, better="lower"), "b": metric(1)}}
    ratios = _bench_report.ratios(a, b)
    assert set(ratios) == {"decode", "first token"}
    assert ratios["decode"]["verdict"] == "better" and ratios["decode"]["ratio"] == pytest.approx(21 / 11)
    # They overlap: that is no difference.
    assert ratios["first token"]["verdict"] == "same"
    assert _bench_report.ratios(b, a)["decode"]["verdict"] == "worse"
    # One sample says nothing about spread.
    single = {"metrics": {"x": metric(1)}}, {"metrics": {"x": metric(9)}}
    assert _bench_report.ratios(*single)["x"]["verdict"] == "same"

    for name, result in {"a": a, "b": b}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    code, out, _ = bench("--compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert code == 0 and "better" in out and "a.json" in out
    for other in ({"x": 1}, {"x": metric(1) | {"samples": 5}}, {"x": metric(1) | {"low": None}}, 5):
        (tmp_path / "c.json").write_text(json.dumps({"metrics": other}))
        code, _, err = bench("--compare", str(tmp_path / "a.json"), str(tmp_path / "c.json"))
        assert code == 1 and "is no result of `eliza bench --json`" in err


def test_a_comparison_of_anybodys_files(bench, tmp_path):
    """Names are shown as they are, whatever they hold; figures that are text are figures."""
    odd = {"[red]x\x1b": metric(1, 2) | {"value": "2", "unit": 5}}
    for name in ("[a].json", "[b].json"):
        (tmp_path / name).write_text(json.dumps({"metrics": odd}))
    code, out, _ = bench("--compare", str(tmp_path / "[a].json"), str(tmp_path / "[b].json"))
    assert code == 0 and "[a].json" in out and "[red]x␛" in out


def test_plots(tmp_path, bench, monkeypatch):
    results = {"one & <two>": {"metrics": {"decode": metric(10, 11, 12)}}, "x": {"metrics": {"decode": metric(20)}}}
    drawing = ElementTree.fromstring(_plot.svg(results))
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "one & <two>" in texts and "11 x" in texts and "20 x" in texts
    width = float(drawing.get("width"))
    for bar in drawing.iter("{http://www.w3.org/2000/svg}rect"):
        if "%" not in bar.get("width"):
            assert float(bar.get("x")) + float(bar.get("width")) <= width
    file = tmp_path / "plot.svg"
    assert bench(CYCLE, *SMALL, "--plot", str(file))[0] == 0 and ElementTree.parse(file)
    monkeypatch.setattr(_plot.importlib.util, "find_spec", lambda name: None)
    # Said before anything is measured, which takes minutes.
    for path, message in {
        "plot.png": "pip install matplotlib",
        "plot.gif": "no known kind",
        "nowhere/plot.svg": "nowhere' is no folder",
    }.items():
        code, out, err = bench(CYCLE, *SMALL, "--plot", str(tmp_path / path))
        assert (code, out) == (1, "") and message in err


def test_called_wrongly(bench):
    for arguments in ((), (CYCLE, "--compare", "a", "b"), (CYCLE, "--decode", "1"), (CYCLE, "--repeat", "0")):
        assert bench(*arguments)[0] == 2
