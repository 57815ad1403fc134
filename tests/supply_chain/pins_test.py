"""Every input that is fetched is pinned by sha256, and another file than the pinned one is not taken.

The first half reads the tree itself, so the test runs each time (the tag `external`); the second runs the pip that
third_party/pypi.bzl runs, with its options, on a wheel made here. That a build ends at a wrong hash is tried in full by
.ci/wrong_hash, which needs a second Bazel.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.runfile import runfile

# A runfile is a link to the file in the tree.
ROOT = runfile("LICENSE").resolve().parent
PIN = re.compile(r"[0-9a-f]{64}")


def _calls(text: str) -> list[tuple[str, str]]:
    """(rule, body) of each repository that extensions.bzl makes."""
    return re.findall(r"^    (\w+)\(\n(.*?)^    \)$", text, re.DOTALL | re.MULTILINE)


def test_every_repository_is_pinned():
    calls = _calls((ROOT / "third_party/extensions.bzl").read_text())
    assert len(calls) >= 6
    for rule, body in calls:
        pinned = PIN.search(body) or re.search(r'requirements(_lock)? = "', body)
        assert pinned, f"{rule} without a sha256:\n{body}"
        for value in re.findall(r'sha256 = "(.*?)"', body):
            assert PIN.fullmatch(value), f"{rule}: no sha256: {value}"


def test_nothing_is_fetched_past_the_pins():
    """Whatever downloads is below third_party, and hands a hash on."""
    for path in [*ROOT.glob("*.bazel"), *(ROOT / "platforms").rglob("*.bzl"), *(ROOT / "third_party").rglob("*.bzl")]:
        text = path.read_text()
        # In extensions.bzl the test above has them.
        known = path.name == "extensions.bzl"
        assert known or not re.search(r"(http_archive|http_file|git_repository)\(", text), path
        for call in re.findall(r"\.download(?:_and_extract)?\((.*?)\n +\)", text, re.DOTALL):
            assert re.search(r"\bsha256 = \w+", call), f"{path.relative_to(ROOT)} downloads without a hash: {call}"
        assert text.count('"pip", "download"') == text.count('"--require-hashes"'), path
    assert '"--require-hashes"' in (ROOT / "third_party/pypi.bzl").read_text()


def _requirement_files() -> list[Path]:
    folders = [ROOT / "third_party", ROOT / "tools"]
    return sorted(path for folder in folders for path in folder.rglob("requirements*.txt") if "npm" not in path.name)


@pytest.mark.parametrize("path", _requirement_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_requirement_has_a_hash(path):
    text = path.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "-"))]
    assert lines
    for line in lines:
        assert re.search(r"==\S+.*--hash=sha256:[0-9a-f]{64}", line), f"without a version and a hash: {line}"


def _wheel(folder: Path) -> Path:
    path = folder / "eliza_pin_probe-1.0-py3-none-any.whl"
    info = "eliza_pin_probe-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("eliza_pin_probe.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: eliza-pin-probe\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.parametrize("right", [True, False])
def test_another_file_is_not_taken(tmp_path, right):
    digest = hashlib.sha256(_wheel(tmp_path).read_bytes()).hexdigest()
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"eliza-pin-probe==1.0 --hash=sha256:{digest if right else '0' * 64}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--requirement", str(requirements), "--dest", str(tmp_path / "download")]
    command += ["--no-index", "--find-links", str(tmp_path), "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True)
    if right:
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "download").iterdir())
    else:
        assert done.returncode != 0
        # The words by which pypi.bzl knows it.
        assert "DO NOT MATCH" in done.stderr
        assert not (tmp_path / "download").exists() or not list((tmp_path / "download").iterdir())
