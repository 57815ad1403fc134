#!/usr/bin/env python3
"""Runs what docs/reliability.md reports, and writes the figures into its table.

    tests/reliability/table.py [ROW...]       the rows named; all, which takes hours, where none is

$BAZEL is run in the place of ./bazelw, if it is set. A row whose command fails says so, and so does the exit code; what
the command printed is shown.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/reliability.md"
TABLE = re.compile(r"(<!-- table -->\n(?:\|[^\n]*\n){2})(.*?)(<!-- end -->)", re.DOTALL)
BAZEL = os.environ.get("BAZEL") or "./bazelw"
# A model for each of the checks that read one before its runtime does, and the targets that make them.
MODELS = " ".join(
    f"bazel-bin/tests/models/{path}"
    for path in [
        "tiny_llama_cycle_bundle/text/tiny_llama_cycle.gguf",
        "tiny_gemma3_litertlm_bundle/text/tiny_gemma3.litertlm",
        "tiny_mlx_llama_f32_bundle/text/model.safetensors",
    ]
)
MODEL_TARGETS = " ".join(
    f"//tests/models:{name}" for name in ["tiny_llama_cycle", "tiny_gemma3_litertlm", "tiny_mlx_llama_f32"]
)

_ASAN = f"{BAZEL} test --config=asan --config=ubsan --build_tests_only"
_TSAN = f"{BAZEL} test --config=tsan --build_tests_only"

# Where threads meet above the runtimes.
_THREADED = " ".join(
    ["//tests/bundle/...", "//tests/faults/...", "//tests/fuzz:sequence_test", "//tests/races:races_alphabet_test"]
    + [f"//tests/ffi:{name}_test" for name in ["concurrency", "dispatch", "error", "handle_table"]]
)
# llama.cpp, and what is above it.
_LLAMA_CPP = (
    "//tests/llama_cpp/... //tests/conformance:llama_cpp //tests/ffi/... //tests/races:races_llama_test "
    "//tests/races:restart_test"
)
# Compares texts of a real model on one thread, and had not ended after eight minutes.
_NOT_UNDER_TSAN = "-//tests/llama_cpp:greedy"
# MLX and LiteRT-LM, and what is above them. They are libraries that others built, without a sanitizer: what our code
# does with memory is seen, and what theirs does is not. TSan has no row of them: it would not see the atomics by which
# their threads wait for each other, and call what is ordered a race.
_RUNTIMES = (
    "//tests/mlx/... //tests/litert_lm/... //tests/conformance:mlx //tests/conformance:litert_lm "
    "//tests/hostile:runtimes_test //tests/races:races_mlx_test //tests/races:races_litert_lm_test"
)
_FUZZ_TARGETS = (
    "gguf safetensors litertlm tokenizer manifest selector slot utf8 sequence sequence_llama grammar".split()
)


@dataclass(frozen=True)
class Row:
    """`report` makes a result of what `command` printed. `needs`: targets that it reads."""

    command: str
    report: Callable[[str], str]
    needs: str = ""


def _some(count: int) -> int:
    """The count. A command that succeeds and has done nothing has failed."""
    if count == 0:
        raise ValueError("it did nothing")
    return count


def _lines(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def _faults(output: str) -> str:
    lines = [line for line in _lines(output) if "injected" in line]
    injected = _some(sum(line["injected"] for line in lines))
    memory = sum(line["injected"] for line in lines if line["kind"] == "allocate")
    problems = len(_lines(output)) - len(lines)
    return f"{memory:,} allocations and {injected - memory:,} file operations failed; {problems} problems"


def _races(output: str) -> str:
    line = _lines(output)[0]
    return (
        f"{line['cancels']:,} cancels, {line['in_prefill']:,} before or in a prefill; {line['closes']:,} closes "
        f"under use, {line['closes_in_a_call']:,} of them in a call"
    )


def _soak(output: str) -> str:
    (line,) = _lines(output)
    return (
        f"{line['minutes']} min, {line['sessions']:,} contexts, {line['generations']:,} generations, "
        f"{line['cancels']:,} cancels, {line['slots']:,} slots: {line['rss_kb_per_minute']:+} KB/min, "
        f"{line['descriptors_per_minute']:+} descriptors/min"
    )


def _fuzz(output: str) -> str:
    runs = [int(count) for count in re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)]
    return f"{_some(sum(runs)):,} inputs, no finding"


def _tests(output: str) -> str:
    passed = len(re.findall(r"^//\S+ .*PASSED", output, re.MULTILINE))
    return f"{_some(passed)} test targets passed"


def _hostile(output: str) -> str:
    sys.path.insert(0, str(ROOT))
    from tests.hostile import gguf_cases, litertlm_cases, mlx_cases, other_cases

    kinds = {
        "GGUF": gguf_cases.CLASSES,
        "safetensors": mlx_cases.SAFETENSORS_CLASSES,
        "config.json": mlx_cases.CONFIG_CLASSES,
        "tokenizer.json": mlx_cases.TOKENIZER_CLASSES,
        ".litertlm": litertlm_cases.CLASSES,
        "manifests": other_cases.MANIFEST_CLASSES,
    }
    counts = [f"{sum(len(make()) for make in classes.values())} {kind}" for kind, classes in kinds.items()]
    return f"{', '.join(counts)}, some 250 slot files: {_tests(output)}"


def _architectures(output: str) -> str:
    lines = _lines(output)
    used, refused = (sum(line[kind] for line in lines) for kind in ("used", "refused"))
    problems = sum(len(line["problems"]) for line in lines)
    tried = _some(used + refused)
    return f"{len(lines)} models, {tried:,} changes: {used:,} used, {refused:,} refused; {problems} problems"


ROWS = {
    "hostile": Row(f"{BAZEL} test //tests/hostile/...", _hostile),
    "architectures": Row(f"{BAZEL} run //tests/hostile:architectures -- --share=${{SHARE:-0/1}}", _architectures),
    "faults": Row(f"{BAZEL} run //tests/faults:faults -- $FOLDER $(realpath {MODELS})", _faults, MODEL_TARGETS),
    "faults_llama": Row(
        f"{BAZEL} run //tests/faults:llama -- $FOLDER $(realpath bazel-bin/tests/models/tiny_llama_cycle_bundle)",
        _faults,
        "//tests/models:tiny_llama_cycle",
    ),
    **{
        row: Row(f"{BAZEL} test --test_output=all //tests/races:{test}_test", _races)
        for row, test in {
            "races": "races_alphabet",
            "races_llama": "races_llama",
            "races_litert_lm": "races_litert_lm_10000",
            "races_mlx": "races_mlx_10000",
        }.items()
    },
    **{f"fuzz {target}": Row(f".ci/fuzz ${{FUZZ_SECONDS:-600}} {target}", _fuzz) for target in _FUZZ_TARGETS},
    "asan+ubsan": Row(".ci/sanitized", lambda output: f"{_tests(output)}; in the fuzzers {_fuzz(output)}"),
    "asan+ubsan llama.cpp": Row(f"{_ASAN} //tests/support/... //tests/faults:llama_test {_LLAMA_CPP}", _tests),
    "asan+ubsan runtimes": Row(f"{_ASAN} {_RUNTIMES}", _tests),
    "tsan layers": Row(f"{_TSAN} {_THREADED}", _tests),
    "tsan llama.cpp": Row(f"{_TSAN} -- {_LLAMA_CPP} {_NOT_UNDER_TSAN}", _tests),
    "reproducible": Row("tools/reproducible.sh", lambda output: "two builds in two directories are the same bytes"),
    "wrong hash": Row(".ci/wrong_hash", lambda output: "the build ended, and said why"),
    "soak": Row(f"{BAZEL} run //tests/races:soak -- --minutes=${{SOAK_MINUTES:-30}}", _soak),
}


def run(row: Row) -> tuple[bool, str]:
    """(whether the command succeeded, the result)."""
    command = f"{BAZEL} build {row.needs} && {row.command}" if row.needs else row.command
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"FOLDER": folder}
        done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        try:
            return True, row.report(done.stdout + done.stderr)
        except (ValueError, LookupError):
            result = "failed: it printed no figures"
    else:
        result = f"failed with {done.returncode}"
    print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return False, result


def shown(command: str) -> str:
    """The command as somebody types it."""
    command = command.replace(BAZEL, "./bazelw").replace(f"{ROOT}/", "").replace("$FOLDER", "$(mktemp -d)")
    return re.sub(r"\$\{(\w+):-([\d/]+)\}", lambda match: os.environ.get(match[1]) or match[2], command)


def write(name: str, result: str) -> None:
    """Puts a row into the document's table, in the place of an older one of that name."""
    today = datetime.date.today().isoformat()
    text = DOCUMENT.read_text()
    begin, rows, end = TABLE.search(text).groups()
    kept = {row.split("|")[1].strip(): row for row in rows.splitlines()}
    kept[name] = f"| {name} | {result} | {today} | `{shown(ROWS[name].command)}` |"
    ordered = [kept[known] for known in ROWS if known in kept]
    DOCUMENT.write_text(TABLE.sub(lambda _: begin + "".join(row + "\n" for row in ordered) + end, text))


def main(names: list[str]) -> int:
    """The exit code."""
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        print(f"no rows {unknown}; there are {list(ROWS)}", file=sys.stderr)
        return 2
    good = True
    for name in names or ROWS:
        succeeded, result = run(ROWS[name])
        print(f"{name}: {result}", flush=True)
        write(name, result)
        good = good and succeeded
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
