"""The eliza command: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.python.program import ELIZA, LIMIT_S, check_message, environment, run, start
from tests.support import models
from tests.support.runfile import runfile

CYCLE = str(models.bundle("tiny_llama_cycle"))
RANDOM = str(models.bundle("tiny_llama_random"))


def generate(*arguments: str | bytes | Path, bundle: str = CYCLE, **kwargs) -> subprocess.CompletedProcess[str]:
    return run(ELIZA, "generate", "--bundle", bundle, *arguments, **kwargs)


def test_generate():
    result = generate("--raw", "abc", "--max-tokens", "6")
    assert (result.returncode, result.stdout) == (0, "defghi\n")
    assert result.stderr.count("\n") == 1
    for part in ("6 tokens", "first after", "tokens/s", "llama.cpp on cpu"):
        assert part in result.stderr


def test_json_is_exactly_one_object():
    result = generate("--raw", "abc", "--max-tokens", "6", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert answer["text"] == "defghi"
    assert len(answer["tokens"]) == 6
    assert answer["backend"] == "llama.cpp"
    assert answer["stop_reason"] == "max_tokens"
    timings = answer["timings"]
    assert timings["first_token"] > 0 and timings["tokens_per_second"] > 0


def test_chat_template_unless_raw():
    def text(*arguments: str) -> str:
        result = generate(*arguments, "--max-tokens", "8", "--json", bundle=RANDOM)
        return json.loads(result.stdout)["tokens"]

    assert text("Hello") == text("--raw", "<|user|>Hello\n<|assistant|>")
    assert text("Hello", "--system", "Be") == text("--raw", "<|system|>Be\n<|user|>Hello\n<|assistant|>")


def test_seed():
    def text(seed: int) -> str:
        return generate("x", "--max-tokens", "12", "--temperature", "1.5", "--seed", str(seed), bundle=RANDOM).stdout

    assert text(1) == text(1) != text(2)


def test_options_reach_the_engine():
    assert generate("--raw", "abc", "--stop", "h", "--stop", "i").stdout == "defg\n"
    result = generate("--raw", "abc", "--context-size", "64")
    assert "stopped by context_full" in result.stderr


def test_grammars_and_schemas_from_files(tmp_path):
    (tmp_path / "grammar").write_text('root ::= "xyz"')
    assert generate("--raw", "abc", "--grammar", f"@{tmp_path / 'grammar'}").stdout == "xyz\n"
    assert generate("--raw", "abc", "--json-schema", '{"const": "no"}').stdout == '"no"\n'
    (tmp_path / "binary").write_bytes(b"\xff")
    for name, fragment in (("gone", "gone"), ("binary", "no text in UTF-8")):
        result = generate("--raw", "abc", "--grammar", f"@{tmp_path / name}")
        assert result.returncode == 1
        check_message(result.stderr, fragment)


def test_a_drafter():
    result = generate("--raw", "abc", "--max-tokens", "9", "--drafter", models.text_model("tiny_llama_cycle"))
    assert result.stdout == "defghijkl\n"
    assert re.search(r"(\d+) of \1 drafted taken", result.stderr)
    # From the folder where the command runs, as paths on a command line are.
    model = models.text_model("tiny_llama_cycle")
    here = generate("--raw", "abc", "--max-tokens", "9", "--drafter", model.name, folder=model.parent)
    assert here.stdout == "defghijkl\n", here.stderr
    gone = generate("--raw", "abc", "--drafter", "mtp/gone.gguf")
    check_message(gone.stderr, "drafter", "gone.gguf")


def test_a_file_without_its_at_sign(tmp_path):
    (tmp_path / "schema.json").write_text("{}")
    for flag in ("--json-schema", "--grammar"):
        result = generate("--raw", "abc", flag, "schema.json", folder=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        # In a box, with its lines broken.
        assert f"{flag} @schema.json reads it" in re.sub(r"[│\s]+", " ", result.stderr)


def test_no_bundle():
    for command in (["generate", "x", "--bundle", ""], ["backends", ""], ["chat", ""]):
        result = run(ELIZA, *command)
        assert result.returncode == 1
        check_message(result.stderr, "the bundle is empty")


def test_prompt_from_stdin():
    for arguments in ((), ("-",)):
        assert generate("--raw", "--max-tokens", "3", *arguments, stdin="abc").stdout == "def\n"


def test_stdin_that_is_empty():
    # A template would make a question of it, and the model answer nobody for as long as its context lasts.
    for arguments in ((), ("-",)):
        result = generate(*arguments, bundle=RANDOM)
        assert (result.returncode, result.stdout) == (2, "")
        assert "there is no prompt" in result.stderr


def test_stdin_that_is_no_text():
    for command in (["generate", "--raw", "--bundle", CYCLE], ["chat", CYCLE]):
        result = subprocess.run(
            [runfile(ELIZA), *command],
            input=b"ab\xff",
            capture_output=True,
            env=environment(),
            timeout=LIMIT_S,
            check=False,
        )
        assert (result.returncode, result.stdout) == (1, b"")
        check_message(result.stderr.decode(), "which is no character", "position 2")


def test_stdin_that_is_closed():
    command = [runfile(ELIZA), "generate", "--bundle", CYCLE, "--raw", "--max-tokens", "3", "abc"]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        timeout=LIMIT_S,
        check=False,
    )
    assert (closed.returncode, closed.stdout) == (0, "def\n"), closed.stderr


def test_a_prompt_that_looks_like_an_option():
    assert generate("--raw", "--max-tokens", "3", "--", "--abc").stdout == "def\n"


def test_a_relative_bundle():
    folder = Path(CYCLE).parent
    result = generate("--raw", "abc", "--max-tokens", "3", bundle=Path(CYCLE).name, folder=folder)
    assert result.stdout == "def\n"
    # `bazel run` starts it elsewhere, and says where the user is.
    result = generate("--raw", "abc", "--max-tokens", "3", bundle=Path(CYCLE).name, BUILD_WORKING_DIRECTORY=str(folder))
    assert result.stdout == "def\n"


def test_backends():
    result = run(ELIZA, "backends", CYCLE)
    assert (result.returncode, result.stderr) == (0, "")
    header, *rows = [line.split() for line in result.stdout.splitlines()]
    assert header == ["backend", "compiled", "available", "serves", "rank", "chosen", "why"]
    assert rows[0][:6] == ["llama.cpp", "yes", "yes", "yes", "0", "yes"]
    assert {row[0] for row in rows} >= {"llama.cpp", "litert-lm", "mlx-coreml"}
    assert all(len(row) > 6 for row in rows)
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())
    report = json.loads(run(ELIZA, "backends", CYCLE, "--json").stdout)
    assert report["chosen"] == "llama.cpp"
    assert [row["name"] for row in report["backends"]] == [row[0] for row in rows]


def test_backends_when_none_can_be_chosen():
    for arguments in ((), ("--json",)):
        result = run(ELIZA, "backends", CYCLE, *arguments, ELIZA_LLM_BACKEND="litert-lm")
        assert result.returncode == 1
        assert "litert-lm" in result.stdout
        check_message(result.stderr, "ELIZA_LLM_BACKEND", "litert-lm")


def test_tokenize():
    result = run(ELIZA, "tokenize", "--bundle", CYCLE, "the</s>", "--json")
    tokens = json.loads(result.stdout)
    assert tokens["tokens"][0] == 1 and tokens["pieces"][0] == "<s>"
    assert "".join(tokens["pieces"][1:]) == "the</s>"
    special = run(ELIZA, "tokenize", "--bundle", CYCLE, "the</s>", "--special", "--json")
    assert json.loads(special.stdout)["tokens"][-1] == 2
    assert "'<s>'" in run(ELIZA, "tokenize", "--bundle", CYCLE, "x").stdout


def test_version_and_help():
    version = run(ELIZA, "--version")
    assert (version.returncode, version.stdout.split()[0]) == (0, "eliza")
    for arguments in (["--help"], ["-h"], ["generate", "--help"], ["backends", "-h"], ["tokenize", "-h"]):
        result = run(ELIZA, *arguments)
        assert result.returncode == 0 and "Usage" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["generate", "x"],
        ["generate", "--bundle", CYCLE, "--no-such-option", "x"],
        ["generate", "--bundle", CYCLE, "--max-tokens", "many", "x"],
        ["generate", "--bundle", CYCLE, "x", "y"],
        ["generate", "--bundle", CYCLE, "--raw", "--system", "x", "y"],
        ["backends"],
    ],
)
def test_called_wrongly(arguments):
    result = run(ELIZA, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr and "Error" in result.stderr


@pytest.fixture
def bundle(tmp_path):
    """A function that makes a bundle with these files in text/, `_` standing for the dot."""

    def make(**files: bytes) -> str:
        (tmp_path / "text").mkdir()
        for name, data in files.items():
            (tmp_path / "text" / name.replace("_", ".")).write_bytes(data)
        return str(tmp_path)

    return make


def test_bad_bundles(bundle, tmp_path):
    model = models.text_model("tiny_llama_cycle")
    data = model.read_bytes()
    where = bundle()
    for path, files, fragments in [
        ("/no/such/bundle", {}, ["/no/such/bundle"]),
        ("no-such-model", {}, ["no-such-model", "`eliza bundle fetch` lists"]),
        (str(model), {}, [str(model), "director"]),
        (where, {}, [where, "gguf"]),
        (where, {"a.gguf": b"garbage" * 99}, ["a.gguf"]),
        (where, {"a.gguf": data[:1000]}, ["a.gguf"]),
        (where, {"a.gguf": data, "b.gguf": data}, ["a.gguf", "b.gguf"]),
    ]:
        for name, content in files.items():
            (tmp_path / "text" / name).write_bytes(content)
        result = generate("x", bundle=path)
        assert (result.returncode, result.stdout) == (1, ""), path
        check_message(result.stderr, *fragments)
        assert generate("x", "--json", bundle=path).stdout == ""


def test_bad_values():
    for arguments, fragments in [
        (["--temperature", "-1", "x"], ["temperature", "-1"]),
        (["--temperature", "nan", "x"], ["temperature", "nan"]),
        (["--max-tokens", "-5", "x"], ["max_tokens", "-5"]),
        (["--seed", "-1", "x"], ["seed", "-1"]),
        (["--raw", b"\xff"], ["prompt"]),
        (["--raw", "--context-size", "64", "a" * 500], ["64"]),
    ]:
        result = generate(*arguments)
        assert (result.returncode, result.stdout) == (1, "")
        check_message(result.stderr, *fragments)


def test_bad_environment():
    check_message(generate("x", ELIZA_LLM_BACKEND="nope").stderr, "ELIZA_LLM_BACKEND", "nope", "llama.cpp")
    result = generate("x", ELIZA_INFERENCE_LIBRARY="/no/such.so")
    assert result.returncode == 1
    check_message(result.stderr, "ELIZA_INFERENCE_LIBRARY", "/no/such.so")


def test_ctrl_c():
    with start(ELIZA, "generate", "--bundle", CYCLE, "--raw", "abc", "--context-size", "2048") as process:
        assert process.stdout.read(3) == b"def"
        process.send_signal(signal.SIGINT)
        rest, stderr = process.communicate(timeout=LIMIT_S)
        # Quick models may be done before the signal arrives.
        assert process.returncode == 130 or b"context_full" in stderr
    assert b"Traceback" not in stderr
    assert rest.endswith(b"\n")


def test_nobody_reads_the_output():
    process = start(ELIZA, "generate", "--bundle", CYCLE, "--raw", "abc")
    process.stdout.read(3)
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(LIMIT_S) in (0, 1)
    assert b"Traceback" not in stderr and b"Exception" not in stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk():
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            ["sh", "-c", 'exec "$0" "$@" > /dev/full', str(_program()), "tokenize", "--bundle", CYCLE, "x"],
            stderr=subprocess.PIPE,
            stdout=full,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert result.returncode == 1
    check_message(result.stderr, "No space left")


def _program() -> Path:
    from tests.support.runfile import runfile

    return runfile(ELIZA)
