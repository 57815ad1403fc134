"""Programs of this workspace as processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.runfile import runfile

# Nothing hangs for ever; the slowest machine is not this slow. Within the timeout of a small test.
LIMIT_S = 240

ELIZA = "python/eliza"
DEMO = "python/demo"


def environment(**variables: str) -> dict[str, str]:
    """The test's environment without what would reach into the program, and with `variables`."""
    foreign = ("ELIZA_", "PYTHON", "BUILD_", "RUNFILES_", "COLUMNS", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    # The programs of a test compile their modules once, and not each time.
    compiled = os.path.join(os.environ["TEST_TMPDIR"], "pycache")
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONPYCACHEPREFIX": compiled, **variables}


def run(
    program: str,
    *arguments: str | bytes | Path,
    stdin: str = "",
    folder: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, with its output and its errors captured."""
    return subprocess.run(
        [runfile(program), *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=environment(**variables),
        timeout=LIMIT_S,
        check=False,
    )


def start(program: str, *arguments: str | Path, **variables: str) -> subprocess.Popen[bytes]:
    """Starts a program whose output is read while it runs."""
    return subprocess.Popen(
        [runfile(program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    )


def check_message(stderr: str, *fragments: str) -> None:
    """Checks that stderr is one message of eliza's, and no traceback."""
    assert "Traceback" not in stderr, stderr
    assert stderr.startswith("eliza: ") and stderr.endswith("\n"), stderr
    assert stderr.count("eliza: ") == 1, stderr
    for fragment in fragments:
        assert fragment in stderr, f"{fragment!r} is not in {stderr!r}"
