"""The AAR's classes and their JNI bridge, without Android: a Java program on this machine's JVM streams through them.

The virtual machine checks every call of the bridge (-Xcheck:jni): a reference too many, or a call with an exception
pending, is a warning on its output, and fails the test.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support import abi, models
from tests.support.runfile import runfile

CYCLE = "tiny_llama_cycle"
CANCELLED = -7
INVALID_ARGUMENT = -2
BUNDLE_INVALID = -3


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """Runs a Java file with the AAR's classes; returns what it wrote, line by line."""
    # Side by side, as in an APK.
    libraries = tmp_path_factory.mktemp("lib")
    for library in (abi.library_path(), runfile("dist/android/libelizainference_jni.so")):
        shutil.copy(library, libraries)
    command = [os.environ["JAVA"], "-Xcheck:jni", f"-Djava.library.path={libraries}"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(libraries), "LC_ALL": "C.UTF-8"}

    def run(source: str | Path, *arguments: object, classes: str | Path = "dist/android/classes.jar") -> list[str]:
        files = ["-cp", runfile(str(classes)), runfile(str(source))]
        done = subprocess.run([*command, *files, *map(str, arguments)], capture_output=True, env=environment)
        output, errors = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == 0, output + errors
        assert "JNI" not in output + errors, output + errors  # what -Xcheck:jni has to say
        return output.splitlines()

    return run


@pytest.fixture(scope="module")
def client(java):
    """Runs JniClient."""
    return functools.partial(java, "tests/clients/JniClient.java")


def failures(lines: list[str]) -> list[tuple[int, str]]:
    """The lines that JniClient.fails wrote."""
    return [(int(status), message) for status, _, message in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("model", [CYCLE, "tiny_gemma3_cycle"])
def test_greedy_text(client, model):
    assert client("generate", models.bundle(model), "abc", 40) == [models.alphabet("abc", 40), "40 0"]


def test_characters_beyond_16_bits(client):
    # Two tokens for each character, on average.
    text, counts = client("generate", models.bundle("tiny_llama_utf8"), "a", 64)
    assert text == models.utf8("a", 32)
    assert "😀" in text
    assert counts == "64 0"


def test_malformed_bytes(client):
    text, _ = client("generate", models.bundle("tiny_llama_malformed"), "a", 64)
    assert text == "\ufffdb\ufffdc\ufffdd\ufffd"


def test_a_path_beyond_16_bits(client, tmp_path):
    bundle = shutil.copytree(models.bundle(CYCLE), tmp_path / "bündel 😀")
    assert client("generate", bundle, "abc", 3)[0] == "def"


def test_cancel_and_resets(client):
    said = models.alphabet("abc", 12)
    first, cancelled, second, kept, third = client("resets", models.bundle(CYCLE))
    assert [first, second, third] == [said] * 3
    assert failures([cancelled])[0][0] == CANCELLED
    prompt = int(kept.split()[-1])
    assert kept == f"{prompt - 1} of {prompt}"


def test_cancel_from_another_thread(client):
    assert client("cancel", models.bundle(CYCLE)) == [str(CANCELLED)]


def test_close_from_another_thread(client):
    # In a call: cancelled. Between two: the handle is none any more.
    assert client("close", models.bundle(CYCLE))[0] in (str(CANCELLED), str(INVALID_ARGUMENT))


def test_errors_are_exceptions_with_the_status(client):
    thrown = failures(client("errors", models.bundle(CYCLE)))
    statuses = [status for status, _ in thrown]
    assert statuses == [BUNDLE_INVALID] + [INVALID_ARGUMENT] * (len(thrown) - 1)
    messages = [message for _, message in thrown]
    assert len(messages) == 15
    assert all(messages)
    assert "/no/such/😀" in messages[0]
    assert '"/no\\0such" holds a NUL' in messages[1]
    assert "surrogate" in messages[2]
    assert "no.such.key" in messages[3]


def test_every_option_arrives(client):
    thrown = failures(client("options", models.bundle(CYCLE)))
    words = [
        "max_tokens is -3",
        "temperature is -4",
        "top_k is -5",
        "repeat_penalty is inf",
        "draft_min is -6",
        "nowhere.gguf",
        "gbnf_grammar",
        "no_such_k",
        "no_such_v",
        "context_size is -7",
    ]
    assert len(thrown) == len(words)
    assert [word for word, (_, message) in zip(words, thrown, strict=True) if word not in message] == [], thrown
    assert all(status < 0 for status, _ in thrown)


def test_statistics_report_and_metadata(client):
    statistics, report, architecture = client("facts", models.bundle(CYCLE))
    assert json.loads(statistics)["backend"] == "llama.cpp"
    assert json.loads(report)["chosen"] == "llama.cpp"
    assert architecture == "llama"


def test_slots(client, tmp_path):
    said, missing = client("slots", models.bundle(CYCLE), tmp_path / "slot 😀")
    assert said == models.alphabet("x", 5)
    assert "slot 😀.missing" in missing


def test_many_streams_and_failures(client):
    assert client("many", models.bundle(CYCLE), 200) == ["200"]


def test_classes_are_found_when_the_bridge_is_loaded(java, tmp_path):
    """Not at the first chunk, or where memory has run out: one that is missing is an error of the load."""
    classes = tmp_path / "classes"
    with zipfile.ZipFile(runfile("dist/android/classes.jar")) as jar:
        jar.extractall(classes)
    (classes / "ai/eliza/inference/Chunk.class").unlink()
    source = tmp_path / "Load.java"
    source.write_text(
        """
        class Load {
          public static void main(String[] arguments) throws Exception {
            try {
              Class.forName("ai.eliza.inference.Native");
            } catch (NoClassDefFoundError error) {
              System.out.println(error.getMessage());
            }
          }
        }
        """
    )
    assert java(source, classes=classes) == ["ai/eliza/inference/Chunk"]


def test_the_example_for_android(java):
    example = "examples/android/app/src/main/java/example/Generate.java"
    assert java(example, models.bundle(CYCLE), "abc") == [models.alphabet("abc", 64)]
