"""Variants that differ in gates share one compilation of llama.cpp (platforms/reset_flags.bzl)."""

from __future__ import annotations

import re
from collections import Counter

from tests.support import commands

OBJECTS = [path for command in commands.read() for path in command.outputs if path.endswith(".o")]


def _times(folder: str) -> Counter[str]:
    """How often each object file below a folder is made: once for each configuration of Bazel's."""
    inside = [path.partition("/bin/")[2] for path in OBJECTS]
    return Counter(path for path in inside if re.match(folder, path))


def test_llama_cpp_is_compiled_once():
    times = _times(r"external/\S+llama_cpp/_objs/")
    assert len(times) > 80
    assert set(times.values()) == {1}


def test_the_variants_are_different_configurations():
    # Otherwise the test above would say nothing.
    assert max(_times("native/ffi/_objs/").values()) == 3
