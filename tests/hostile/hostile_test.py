"""Hundreds of malformed files through the C ABI: each an error message, none a crash, a hang or a wave of memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from pathlib import Path

import pytest

from tests.hostile import gguf_cases, other_cases, runner
from tests.hostile.messages import problems, readable, refusal
from tests.support import abi, models

CYCLE = "tiny_llama_cycle"
LEAST = 300  # inputs, all together


def bundle(folder: Path, **files: bytes) -> Path:
    """A bundle with the given files: `model` and `manifest`."""
    (folder / "text").mkdir(parents=True, exist_ok=True)
    if "model" in files:
        (folder / "text" / "model.gguf").write_bytes(files["model"])
    if "manifest" in files:
        (folder / "eliza-1.manifest.json").write_bytes(files["manifest"])
    return folder


def refuse_model(folder: Path, cases: dict[str, bytes], name: str) -> list[str]:
    """Every way to a model file, each of which has to refuse it or, for the vocabulary alone, may take it."""
    with abi.Context(bundle(folder, model=cases[name])) as context:
        messages = [refusal(context.open, max_tokens=1, context_size=64), refusal(context.open)]
        try:
            context.tokenize("abc")
        except abi.Error as error:
            messages.append(readable(error.message))
        context.report()
        for message in messages:
            assert "model.gguf" in message, message
        return messages


def refuse_manifest(folder: Path, cases: dict[str, bytes], name: str) -> list[str]:
    """A manifest is refused when the context is created, or when the file it names is looked for."""
    bundle(folder, model=gguf_cases.good(), manifest=cases[name])
    try:
        context = abi.Context(folder)
    except abi.Error as error:
        return [readable(error.message)]
    with context:
        return [refusal(context.open), refusal(context.tokenize, "abc")]


@pytest.mark.parametrize("kind", gguf_cases.CLASSES)
def test_gguf(kind, tmp_path):
    abi.load()
    cases = gguf_cases.CLASSES[kind]()
    assert problems(cases, functools.partial(refuse_model, tmp_path, cases)) == ([], len(cases))


def test_a_folder_whose_name_speaks_of_memory(tmp_path):
    """What llama.cpp says of a file names it, and is not taken for missing memory."""
    for name, data in {"tensors": "two of one name", "nothing": "a key twice"}.items():
        folder = bundle(tmp_path / "malloc allocated", model=gguf_cases.CLASSES[name]()[data])
        with abi.Context(folder) as context, pytest.raises(abi.Error, match="llama.cpp cannot load") as caught:
            context.open(context_size=64)
        assert caught.value.status == abi.BUNDLE_INVALID


def use_model(folder: Path, cases: dict[str, bytes], name: str) -> list[str]:
    """Everything that computes with a model: what it refuses has words, and the rest works."""
    messages = []

    def attempt(call, *arguments) -> None:
        try:
            call(*arguments)
        except abi.Error as error:
            messages.append(readable(error.message))

    def generate(context: abi.Context) -> None:
        with context.open(max_tokens=4, context_size=64, temperature=0.7) as stream:
            stream.prefill([3, 70, 71])
            stream.generate()
            context.library.call("llm_stream_save_slot", stream.handle, os.fsencode(folder / "slot"))
            context.library.call("llm_stream_restore_slot", stream.handle, os.fsencode(folder / "slot"))
            stream.prefill([72])
            stream.generate()

    def embed(context: abi.Context) -> None:
        size, floats = ctypes.c_int(), (ctypes.c_float * 1024)()
        context.library.call("embed", context.handle, b"abc", 3, 1, floats, len(floats), ctypes.byref(size))

    with abi.Context(bundle(folder, model=cases[name])) as context:
        attempt(context.tokenize, "abc é \0 👍" * 9)
        attempt(generate, context)
        attempt(embed, context)
    return messages


def test_models_that_are_half_true(tmp_path):
    abi.load()
    cases = gguf_cases.half_true()
    outcomes = list(runner.run(list(cases), functools.partial(use_model, tmp_path, cases)))
    assert [f"{outcome.name}: {outcome.problem}" for outcome in outcomes if outcome.problem] == []
    # It is no test of refusals: nothing is refused of some.
    assert any(not outcome.messages for outcome in outcomes)


# A name that says something to a terminal.
ODD = "\x1b[2J\x07\r\n\x7f\x9b31m"


@pytest.mark.parametrize("names", [["{}.bin"], ["{}.gguf"], ["{}1.gguf", "{}2.gguf"], ["{}-00001-of-00003.gguf"]])
def test_names_of_files(monkeypatch, tmp_path, names):
    folder = bundle(tmp_path / ODD)
    for name in names:
        (folder / "text" / name.format(ODD)).write_bytes(b"GGUF")
    for wanted in ("", "llama.cpp", "litert-lm", ODD):
        monkeypatch.setenv("ELIZA_LLM_BACKEND", wanted)
        with abi.Context(folder) as context:
            refusal(context.open)
            refusal(context.tokenize, "abc")
            assert [readable(row["reason"]) for row in context.report()["backends"]]
    refusal(abi.Context, folder / ODD)


# A time that grew with the square of the text would be minutes.
TEXTS = {
    "line feeds": b"\n" * 500_000,
    "NULs": bytes(500_000),
    "malformed bytes": b"\xff" * 200_000,
    "special tokens": b"<s>" * 200_000,
    "special tokens and text": b"a<s>b</s> " * 100_000,
}


def test_texts():
    abi.load()

    def tokenize(name: str) -> list[str]:
        with abi.Context(models.bundle(CYCLE)) as context:
            assert len(context.tokenize(TEXTS[name], parse_special=True)) > 200_000
        return []

    assert problems(TEXTS, tokenize) == ([], len(TEXTS))


def test_a_long_number_for_superbpe(tmp_path):
    """Its digits are grouped in threes from the right, in a time that grows with their number."""
    abi.load()
    folder = bundle(tmp_path, model=gguf_cases.byte_level("superbpe", ["1 1", "11 1"]))
    one, eleven, hundred = 16, 94, 95  # the ids of "1", "11" and "111"
    numbers = {
        "one digit": ("1", [one]),
        "three": ("111", [hundred]),
        "four": ("1111", [one, hundred]),
        "five, a letter, four": ("11111x1111", [eleven, hundred, 87, one, hundred]),
        "200,000": ("1" * 200_000, [eleven, *[hundred] * 66_666]),
    }

    def tokenize(name: str) -> list[str]:
        number, tokens = numbers[name]
        with abi.Context(folder) as context:
            assert context.tokenize(number, add_special=False) == tokens
        return []

    assert problems(numbers, tokenize) == ([], len(numbers))


@pytest.mark.parametrize("kind", other_cases.MANIFEST_CLASSES)
def test_manifest(kind, tmp_path):
    abi.load()
    cases = other_cases.MANIFEST_CLASSES[kind]()
    assert problems(cases, functools.partial(refuse_manifest, tmp_path, cases)) == ([], len(cases))


@pytest.fixture
def slot(tmp_path) -> Path:
    path = tmp_path / "slot"
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=4, context_size=64) as stream:
        stream.prefill(context.tokenize("abc"))
        stream.generate()
        context.library.call("llm_stream_save_slot", stream.handle, os.fsencode(path))
    return path


def _restore(path: Path, cases: dict[str, bytes], must_refuse: bool, name: str) -> list[str]:
    """A refused slot leaves the stream as it was; one that is taken leaves a stream that works."""
    path.write_bytes(cases[name])
    with abi.Context(models.bundle(CYCLE)) as context, context.open(max_tokens=4, context_size=64) as stream:
        stream.prefill(context.tokenize("xyz"))
        messages = []
        try:
            context.library.call("llm_stream_restore_slot", stream.handle, os.fsencode(path))
            assert not must_refuse, "it was restored"
            stream.prefill([5])
        except abi.Error as error:
            messages.append(readable(error.message))
            assert stream.generate() == models.alphabet("z", 4)
        else:
            stream.generate()
        return messages


@pytest.mark.parametrize("kind", ["damaged", "forged"])
def test_slot(kind, slot, tmp_path):
    good = slot.read_bytes()
    cases = other_cases.damaged_slots(good) if kind == "damaged" else other_cases.forged_slots(good)
    check = functools.partial(_restore, tmp_path / "hostile", cases, kind == "damaged")
    assert problems(cases, check) == ([], len(cases))


def _odd_files(folder: Path) -> dict[str, Path]:
    """Names of models behind which there is no model."""
    text = bundle(folder) / "text"

    def only(make) -> None:
        for old in text.iterdir():
            old.rmdir() if old.is_dir() and not old.is_symlink() else old.unlink()
        make(text / "model.gguf")

    return {
        "a link to itself": lambda: only(lambda path: path.symlink_to(path.name)),
        "links in a circle": lambda: only(
            lambda path: (path.symlink_to("other"), (text / "other").symlink_to("model.gguf"))
        ),
        "a link to nothing": lambda: only(lambda path: path.symlink_to("/nonexistent/model.gguf")),
        "a link to a folder": lambda: only(lambda path: path.symlink_to("/")),
        "a link to a device": lambda: only(lambda path: path.symlink_to("/dev/zero")),
        "a link to a terminal": lambda: only(lambda path: path.symlink_to("/dev/tty")),
        "a pipe": lambda: only(os.mkfifo),
        "a folder": lambda: only(Path.mkdir),
        "a file of a terabyte of nothing": lambda: only(lambda path: (path.touch(), os.truncate(path, 1 << 40))),
        "a header of a terabyte": lambda: only(
            lambda path: (path.write_bytes(gguf_cases.header(2**20, 2**20)), os.truncate(path, 1 << 40))
        ),
        "a set that is its own second part": lambda: only(
            lambda path: (
                _write_part(text / "m-00001-of-00002.gguf"),
                (text / "m-00002-of-00002.gguf").symlink_to("m-00001-of-00002.gguf"),
            )
        ),
        "a set without its second part": lambda: only(lambda path: _write_part(text / "m-00001-of-00002.gguf")),
    }


def _write_part(path: Path) -> None:
    count = gguf_cases.key("split.count", gguf_cases.U16, b"\x02\x00")
    path.write_bytes(gguf_cases.header(0, 1) + count + bytes(4096))


def test_files_that_are_none(tmp_path):
    abi.load()
    cases = _odd_files(tmp_path)

    def check(name: str) -> list[str]:
        cases[name]()
        with abi.Context(tmp_path) as context:
            return [refusal(context.open), refusal(context.tokenize, "abc")]

    assert problems(cases, check) == ([], len(cases))


def test_there_are_enough(slot):
    good = slot.read_bytes()
    kinds = [make() for make in itertools.chain(gguf_cases.CLASSES.values(), other_cases.MANIFEST_CLASSES.values())]
    kinds += [other_cases.damaged_slots(good), other_cases.forged_slots(good)]
    assert all(len(kind) > 8 for kind in kinds)
    assert sum(map(len, kinds)) >= LEAST
    # Deterministic: what fails here fails anywhere.
    assert [make() for make in gguf_cases.CLASSES.values()] == kinds[: len(gguf_cases.CLASSES)]
