"""What a program that makes calls fail prints: a line of JSON for each walk, and for each problem."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.support.runfile import runfile


def lines(*arguments: Path, **environment: str) -> list[dict]:
    """Runs $FAULTS, which has to end by itself, and to say nothing else."""
    command = [runfile(os.environ["FAULTS"]), *arguments]
    finished = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, errors="replace")
    assert finished.stderr == ""
    assert finished.returncode in (0, 1), f"died with {finished.returncode}: {finished.stdout[-2000:]}"
    return [json.loads(line) for line in finished.stdout.splitlines()]


def problems(lines: list[dict]) -> list[str]:
    """What went wrong."""
    return [line["problem"] for line in lines if "problem" in line]


def walks(lines: list[dict], what: str, kind: str) -> list[dict]:
    """Those in which calls of a kind failed."""
    return [line for line in lines if (line.get("what"), line.get("kind")) == (what, kind)]
