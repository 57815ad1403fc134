"""Files that are no model, or no longer: an error in words, in time, and nobody dies of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import abi
from tests.support.isolated import isolated

MODEL = "tiny_gemma3.litertlm"


def _errors(folder: Path) -> list[str]:
    """What the calls that need the model say of a bundle, with and without a backend named."""
    messages = []
    for backend in (None, "litert-lm"):
        if backend:
            os.environ["ELIZA_LLM_BACKEND"] = backend
        with abi.Context(folder) as context:
            for call in (context.open, lambda: context.tokenize("abc")):
                with pytest.raises(abi.Error) as caught:
                    call()
                messages.append(caught.value.message)
            report = context.library.call_for_string("llm_backend_report", context.handle)
            assert MODEL in report
    return messages


def _bundle(folder: Path, data: bytes) -> Path:
    (folder / "text").mkdir()
    (folder / "text" / MODEL).write_bytes(data)
    return folder


def _garbage(size: int) -> bytes:
    return bytes(i * 7919 % 251 for i in range(size))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (_garbage(100_000), "is not a LiteRT-LM model"),
        (b"\xff\xfe\xfd", "is not a LiteRT-LM model"),
        (b"LITERTLM", "is truncated"),
        (b"LITERTLM" + bytes(100), "is of format version 0"),
        (b"LITERTLM\1\0\0\0" + bytes(100), "claims a header that ends at byte 0"),
        (b"LITERTLM\1\0\0\0" + b"\xff" * 100, "claims a header that ends at byte 18446744073709551615"),
        (b"LITERTLM\1\0\0\0" + bytes(12) + b"\0\1\0\0\0\0\0\0" + b"\xff" * 300, "has a damaged header"),
        (b"LITERTLM\1\0\0\0" + bytes(12) + b"\0\1\0\0\0\0\0\0" + bytes(300), "holds no model that generates text"),
    ],
    ids=["empty", "garbage", "no text", "magic", "zeros", "no header", "endless header", "damaged", "nothing in it"],
)
@isolated
def test_no_model(tmp_path, data, problem):
    for message in _errors(_bundle(tmp_path, data)):
        assert f"{MODEL} {problem}" in message
        # Not where the file is what somebody published.
        assert ("Download the model again" in message) == (not problem.startswith(("is of format", "holds no model")))


@pytest.mark.parametrize("part", range(20))
@isolated
def test_a_truncated_model(tmp_path, bundle, part):
    data = (bundle / "text" / MODEL).read_bytes()
    size = len(data) * part // 20 + part
    for message in _errors(_bundle(tmp_path, data[:size])):
        assert f"{MODEL} is " in message
        assert "truncated" in message or size == 0


@pytest.mark.parametrize("place", range(20))
@isolated
def test_a_model_with_a_hole(tmp_path, bundle, place):
    """Where its header is whole, the runtime decides: an error of its own, or a model of another mind."""
    data = bytearray((bundle / "text" / MODEL).read_bytes())
    begin = len(data) * place // 20
    data[begin : begin + 1024] = bytes(1024)
    folder = _bundle(tmp_path, bytes(data))
    with abi.Context(folder) as context:
        try:
            with context.open(max_tokens=3) as stream:
                stream.prefill(context.tokenize("hello"))
                stream.generate()
        except abi.Error as error:
            assert len(error.message.split()) > 4


@isolated
def test_a_directory(tmp_path):
    (tmp_path / "text" / MODEL).mkdir(parents=True)
    with abi.Context(tmp_path) as context, pytest.raises(abi.Error, match=r"no text/\*\.litertlm") as caught:
        os.environ["ELIZA_LLM_BACKEND"] = "litert-lm"
        context.open()
    assert "cannot serve" in caught.value.message


@isolated
def test_a_missing_file(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / MODEL).symlink_to(tmp_path / "gone")
    with abi.Context(tmp_path) as context, pytest.raises(abi.Error, match="is a link to a file that does not exist"):
        context.open()


@isolated
def test_a_pipe(tmp_path):
    (tmp_path / "text").mkdir()
    os.mkfifo(tmp_path / "text" / MODEL)
    with abi.Context(tmp_path) as context, pytest.raises(abi.Error, match="is not a regular file"):
        context.open()


@isolated
def test_two_models(tmp_path, bundle):
    data = (bundle / "text" / MODEL).read_bytes()
    _bundle(tmp_path, data)
    (tmp_path / "text" / "other.litertlm").write_bytes(data)
    with abi.Context(tmp_path) as context, pytest.raises(abi.Error, match="2 artifacts of runtimeClass"):
        context.open()
