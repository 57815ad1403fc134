"""//:demo: the first thing that people run."""

from __future__ import annotations

from pathlib import Path

from tests.python.program import DEMO, run


def test_a_question_of_ones_own():
    result = run(DEMO, "What is the capital of France?")
    assert result.returncode == 0
    assert "Paris" in result.stdout
    assert "What is the capital of France?" in result.stderr
    assert "tokens/s" in result.stderr


def test_words_without_quotes_are_a_question():
    assert "> Name the capital of France.\n" in run(DEMO, "Name", "the", "capital", "of", "France.").stderr


def test_there_is_a_question_without_one():
    result = run(DEMO)
    assert "Paris" in result.stdout and result.stderr.startswith("> What is the capital of France?\n")


def test_print_bundle():
    result = run(DEMO, "--print-bundle")
    assert (result.returncode, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    bundle = Path(line)
    assert bundle.is_absolute() and (bundle / "eliza-1.manifest.json").is_file()
    assert list((bundle / "text").glob("*.gguf"))
