"""`--config=NAME` and //:elizainference_NAME set the same: one is in .bazelrc, the other in platforms/variants.bzl."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.runfile import runfile

VARIANTS = json.loads(runfile("tests/platforms/variants.json").read_text())
BAZELRC = runfile(".bazelrc").read_text()


def _flags(name: str) -> set[str]:
    """What .bazelrc has for a --config."""
    return {flag for line in re.findall(rf"^build:{name} (.+)$", BAZELRC, re.MULTILINE) for flag in line.split()}


def _written(label: str, value: object) -> str:
    """A flag and its value, as .bazelrc writes them."""
    name = label.removeprefix("//command_line_option:")
    return f"--{name}" if value is True else f"--{name}={value}"


def test_there_are_variants():
    assert len(VARIANTS) >= 6


@pytest.mark.parametrize("name", VARIANTS)
def test_the_config_is_the_variant(name):
    expected = {_written(label, value) for label, value in VARIANTS[name].items()}
    assert _flags(name) == expected | {f"--platforms=//platforms:{name}"}
