"""`eliza doctor`."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from elizainference import _library
from elizainference._engine import Engine
from elizainference._errors import ElizaError
from elizainference._types import Backend
from elizainference._version import __version__
from elizainference.cli import _files, _host, _terminal
from elizainference.cli._backends import show
from elizainference.cli._bundles import fetched, resolve
from elizainference.cli._catalog import MODELS
from elizainference.cli._flags import JsonFlag


def doctor(
    bundle: Annotated[
        str | None, typer.Argument(metavar="BUNDLE", help="Who would answer for it; nothing: for any bundle.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what this machine has, what would run a model, and what to do to get more.

    Exit code 1 where nothing would.
    """
    report = examine(bundle)
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)
    if report["error"]:
        raise ElizaError(report["error"])


def examine(bundle: str | None) -> dict[str, Any]:
    """All that the doctor has to say."""
    report: dict[str, Any] = {
        "eliza": {"version": __version__, "python": platform.python_version(), "library": None, "library_bytes": None},
        "host": _host.host(),
        "libraries": _host.libraries(),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("ELIZA_")},
        "bundle": bundle,
        "backends": [],
        "chosen": None,
        "error": None,
    }
    try:
        path = _library.load()
        report["eliza"] |= {"library": path, "library_bytes": os.path.getsize(path)}
        with tempfile.TemporaryDirectory() as nothing, Engine(resolve(bundle) if bundle else nothing) as engine:
            rows = engine.backends()
            report["backends"] = [asdict(row if bundle else _for_any_bundle(row)) for row in rows]
            selection = engine.backend_report()
            # Without a bundle, that none can be served is no news.
            report["chosen"] = selection["chosen"] if bundle else None
            report["error"] = selection["error"] if bundle or os.environ.get("ELIZA_LLM_BACKEND") else None
            if bundle:
                _try(engine, report)
    except ElizaError as error:
        report["error"] = str(error)
    report["advice"] = advice(report)
    return report


def _for_any_bundle(row: Backend) -> Backend:
    """What of a backend's row does not come from the bundle, which was an empty folder."""
    reason = "here; the bundle decides" if row.compiled and row.available else row.reason
    return replace(row, can_serve=None, chosen=False, reason=reason)


def _try(engine: Engine, report: dict[str, Any]) -> None:
    """Opens a stream: that a backend is chosen does not say that its model loads."""
    if report["error"]:
        return
    with engine.stream([0], context_size=64, raw=True) as stream:
        report["opened"] = {"backend": stream.stats.backend, "device": stream.stats.device}


def advice(report: dict[str, Any]) -> list[str]:
    """What to do to get more."""
    host, found = report["host"], []
    missing = _host.REQUIRED_X86 - set(host["features"] or [])
    if host["machine"] == "x86_64" and host["features"] is not None and missing:
        found.append(
            f"this processor has no {', '.join(sorted(missing))}, which the default build needs: take one built with "
            "--//platforms:cpu_level=baseline"
        )
    cores = min(host["usable_cores"], host["cpu_quota"] or host["usable_cores"])
    threads = report["environment"].get("ELIZA_THREADS", "")
    if threads.isdecimal() and int(threads) > cores:
        found.append(
            f"ELIZA_THREADS is {threads} and {cores:g} cores may be used: a thread without a core makes all of "
            "them wait; unset it"
        )
    if host["load"] > cores and threads != "1":
        found.append(
            f"{host['load']:g} threads wait for {cores:g} cores on average: on a machine this busy ELIZA_THREADS=1 can "
            "be many times faster"
        )
    if host["available_mib"] is not None and host["available_mib"] < 1024:
        found.append(f"{host['available_mib']} MiB of memory are available: take a small model, a small --context-size")
    log = report["environment"].get("ELIZA_LOG", "")
    if log not in ("", "stderr") and not _writable(log):
        found.append(f"ELIZA_LOG is {log}, which cannot be written to: there is no log, and the library keeps quiet")
    for backend in report["backends"]:
        if not backend["compiled"] or backend["available"] is False:
            found.append(f"{backend['name']}: {backend['reason']}")
    if report["libraries"]["CUDA driver"] and not any("cuda" in row["reason"].lower() for row in report["backends"]):
        found.append("there is a CUDA driver; --n-gpu-layers -1 uses it where this build of the library has CUDA")
    if report["bundle"] is None:
        names = [name for name in MODELS if not fetched(name).is_dir()]
        if names:
            found.append(f"no model yet? `eliza bundle fetch {names[0]}` brings a small one")
        found.append("`eliza doctor BUNDLE` says who answers for a bundle, and whether its model loads")
    return found


def _writable(file: str) -> bool:
    """Whether a file can be appended to, or made."""
    return not os.path.isdir(file) and os.access(
        file if os.path.exists(file) else os.path.dirname(file) or ".", os.W_OK
    )


def _print(report: dict[str, Any]) -> None:
    eliza, host = report["eliza"], report["host"]
    size = f" ({_files.megabytes(eliza['library_bytes'])})" if eliza["library_bytes"] else ""
    features = "not told" if host["features"] is None else " ".join(host["features"]) or "none of those that help"
    quota = f", {host['cpu_quota']:g} by quota" if host["cpu_quota"] else ""
    memory = f"{_mib(host['available_mib'])} of {_mib(host['memory_mib'])} available"
    facts = {
        "eliza": f"{eliza['version']}, Python {eliza['python']}",
        "library": f"{eliza['library'] or 'not loaded'}{size}",
        "system": f"{host['system']}, {host['machine']}",
        "processor": f"{host['cpu']}: {host['usable_cores']} of {host['cores']} cores usable{quota}",
        "load": f"{host['load']:g}",
        "features": features,
        "memory": memory,
    }
    facts |= {what: where or "not found" for what, where in report["libraries"].items()}
    facts |= {name: value or "(empty)" for name, value in report["environment"].items()}
    if opened := report.get("opened"):
        facts["bundle"] = f"{report['bundle']}: its model loads, {opened['backend']} on {opened['device']}"
    width = max(map(len, facts))
    for name, value in facts.items():
        print(_terminal.harmless(f"{name:<{width}}  {value}"))
    if report["backends"]:
        print()
        show_backends(report["backends"])
    if report["advice"]:
        print("\nTo get more:")
        for line in report["advice"]:
            print(_terminal.harmless(f"- {line}"))


def show_backends(rows: list[dict[str, Any]]) -> None:
    """The table of `eliza backends`."""
    show([Backend(**row) for row in rows])


def _mib(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,} MiB"
