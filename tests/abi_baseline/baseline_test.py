"""A client compiled against the published header works with this library: baseline.h and symbols.txt, as they were.

docs/abi.md has the policy. Whoever publishes a version replaces both files by that version's.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.abi_baseline.surface import broken, declarations, numbers
from tests.clients.compiled_client import compile_client, run
from tests.support import models
from tests.support.runfile import runfile

ABIS = [12, 15]
BASELINE = runfile("tests/abi_baseline/baseline.h")
CURRENT = runfile("native/include/eliza-inference-ffi.h")


def _library(version: int) -> Path:
    return runfile(os.environ[f"LIBRARY_{version}"])


def _baseline_symbols(version: int) -> set[str]:
    lines = [
        line.split() for line in runfile("tests/abi_baseline/symbols.txt").read_text().splitlines() if line[0] != "#"
    ]
    return {name for since, name in lines if since == "own" or int(since) <= version}


@pytest.mark.parametrize("version", ABIS)
def test_no_symbol_is_gone(version):
    command = ["nm", "-D", "--defined-only", _library(version)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in output.splitlines()}
    assert len(_baseline_symbols(version)) > 70
    assert _baseline_symbols(version) - exported == set()


def test_no_declaration_is_another():
    assert len(declarations(BASELINE)) > 70
    assert declarations(BASELINE) - declarations(CURRENT) == set()


@pytest.mark.parametrize("version", ABIS)
def test_no_number_is_another(version, tmp_path):
    before = numbers(BASELINE, version, tmp_path)
    assert before["sizeof eliza_llm_stream_config_t"] == {12: 80, 15: 88}[version]
    assert before["ELIZA_ERR_CANCELLED"] == -7
    assert ("offset eliza_llm_stream_config_t.context_size" in before) == (version == 15)
    assert broken(before, numbers(CURRENT, version, tmp_path)) == []


# What the checks are there to find: (in the header, in its place, what is found).
BREAKS = {
    "a field moved": (
        "  int32_t max_tokens;",
        "  int64_t max_tokens;",
        "size eliza_llm_stream_config_t.max_tokens: 4, now 8",
    ),
    "a status renumbered": ("#define ELIZA_ERR_OOM (-5)", "#define ELIZA_ERR_OOM (-8)", "ELIZA_ERR_OOM: -5, now -8"),
    "a field gone": (
        "  size_t n_corrected;",
        "",
        "offset EliVerifierEvent.n_corrected: 32, now None",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_found(name, tmp_path):
    old, new, found = BREAKS[name]
    text = BASELINE.read_text()
    assert old in text
    header = tmp_path / "broken.h"
    header.write_text(text.replace(old, new, 1))
    assert found in broken(numbers(BASELINE, 15, tmp_path), numbers(header, 15, tmp_path))


def test_a_changed_declaration_is_found(tmp_path):
    header = tmp_path / "broken.h"
    header.write_text(
        BASELINE.read_text().replace("eliza_inference_free_string(char*", "eliza_inference_free_string(void*")
    )
    assert len(declarations(BASELINE) - declarations(header)) == 1


@pytest.mark.parametrize(
    ("source", "compiler", "standard"), [("client.c", "cc", "c99"), ("jni_bridge.cc", "c++", "c++17")]
)
def test_a_client_of_the_published_header_runs(tmp_path, source, compiler, standard):
    program = compile_client(
        tmp_path, runfile(f"tests/clients/{source}"), compiler, [f"-std={standard}"], _library(15), header=BASELINE
    )
    assert run(program, models.bundle("tiny_llama_cycle"), "abc", 12) == models.alphabet("abc", 12)


def test_a_client_of_the_published_header_for_abi_12_runs(tmp_path):
    options = ["-std=c99", "-DELIZA_INFERENCE_ABI_VERSION=12"]
    program = compile_client(tmp_path, runfile("tests/clients/client.c"), "cc", options, _library(12), header=BASELINE)
    assert run(program, models.bundle("tiny_llama_cycle"), "abc", 12) == models.alphabet("abc", 12)
