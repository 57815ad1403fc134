"""With libraries that only look like LiteRT-LM: of other versions, and as they behave on a bad day."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.models import litertlm_writer
from tests.support import abi, models
from tests.support.isolated import isolated
from tests.support.runfile import runfile
from tests.support.waiting import eventually, until_idle

(
    GOOD,
    SILENT_DECODE,
    ENDLESS_DECODE,
    FAILING_DECODE,
    STUCK_PREFILL,
    FAILING_PREFILL,
    STUCK_ENGINE,
    FAILING_ENGINE,
) = range(8)

# The fake's model says it after every prompt, a character a token.
DIGITS = "01234567890123456789"


def _path(name: str) -> str:
    return os.fspath(runfile(f"tests/litert_lm/lib{name}.so"))


@pytest.fixture(autouse=True)
def environment(monkeypatch) -> None:
    """The good fake, on its CPU."""
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", _path("fake"))
    monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", "cpu")
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.delenv("ELIZA_LITERT_TIMEOUT", raising=False)


@pytest.fixture
def impatient(monkeypatch) -> None:
    """What a test waits for in vain, and more than anything takes that comes."""
    monkeypatch.setenv("ELIZA_LITERT_TIMEOUT", "2")


@pytest.fixture
def bundle() -> Path:
    """A bundle whose model the fake does not look at."""
    return models.bundle("tiny_gemma3_litertlm")


class Fake:
    """The library that the backend has opened, or will open."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_path("fake"))

    def behave(self, how: int) -> None:
        """For the calls from now on."""
        self._library.fake_behave(how)

    def release(self) -> None:
        """Lets go of what is stuck."""
        self._library.fake_release()

    @property
    def pushed(self) -> int:
        """How many chunks it has pushed."""
        return self._library.fake_pushed()

    def wait_until_stuck(self, calls: int = 1) -> None:
        """Until so many calls are."""
        assert eventually(lambda: self._library.fake_stuck() == calls)

    def sessions_after_a_while(self, expected: int) -> int:
        """How many sessions live, once it is the number that is expected, or after a long wait."""
        eventually(lambda: self._library.fake_sessions() == expected)
        return self._library.fake_sessions()


def _error(bundle: Path) -> str:
    with abi.Context(bundle) as context, pytest.raises(abi.Error) as caught:
        context.open()
    return caught.value.message


# -- Versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fake_newer", "it is LiteRT-LM 0.19 or newer, whose functions take other arguments"),
        ("fake_older", "it is no LiteRT-LM, or one older than 0.16"),
        ("fake_incomplete", "it lacks litert_lm_session_rewind_to_step"),
    ],
)
@isolated
def test_other_versions_are_refused_before_a_call(bundle, monkeypatch, name, words):
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", _path(name))
    message = _error(bundle)
    assert f"{_path(name)}: {words}" in message


@isolated
def test_another_library_is_refused(bundle, monkeypatch):
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", os.fspath(abi.library_path()))
    assert "it is no LiteRT-LM, or one older than 0.16" in _error(bundle)


@isolated
def test_a_file_that_is_no_library_is_refused(bundle, monkeypatch):
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", os.fspath(bundle / "text" / "tiny_gemma3.litertlm"))
    assert "was looked for in vain" in _error(bundle)


@isolated
def test_the_fake_works_when_it_is_good(bundle):
    with abi.Context(bundle) as context, context.open() as stream:
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == DIGITS


# -- What a model is made for -----------------------------------------------------------------------


@isolated
def test_a_model_for_another_accelerator_is_not_given_to_the_library(tmp_path, monkeypatch):
    """Which would say that the model may be invalid. Its header says what it is made for."""
    (tmp_path / "text").mkdir()
    model = tmp_path / "text" / "m.litertlm"
    model.write_bytes(litertlm_writer.dumps((litertlm_writer.TF_LITE_MODEL, {"backend_constraint": "gpu"})))
    why = f"{model}: the model is made for gpu, and what may be used here is cpu"
    Fake().behave(FAILING_ENGINE)
    assert why in _error(tmp_path)
    # Where the library chooses, another model of the bundle answers, and the report has the reason.
    monkeypatch.delenv("ELIZA_LLM_BACKEND")
    assert why in _error(tmp_path)
    (tmp_path / "text" / "m.gguf").symlink_to(models.text_model("tiny_llama_cycle"))
    with abi.Context(tmp_path) as context:
        report = context.report()
    assert report["chosen"] == "llama.cpp"
    assert why in next(row["reason"] for row in report["backends"] if row["name"] == "litert-lm")


# -- Waiting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["next", "prefill", "reset", "reset_keep", "cancel", "close"])
@isolated
def test_a_callback_that_never_comes(bundle, impatient, call):
    """A session of the library that is dead does not say so: it just never calls back."""
    fake = Fake()
    with abi.Context(bundle) as context:
        stream = context.open()
        stream.prefill(context.tokenize("abc"))
        fake.behave(SILENT_DECODE)
        with pytest.raises(abi.Error, match=r"LiteRT-LM has not given a token within 2 s; .*ELIZA_LITERT_TIMEOUT"):
            stream.next()
        fake.behave(GOOD)
        if call == "next":
            assert stream.generate() == DIGITS
        elif call == "prefill":  # with what was there before
            stream.prefill(context.tokenize("d", add_special=False))
            assert stream.generate() == DIGITS
        elif call == "reset":
            stream.reset()
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == DIGITS
        elif call == "reset_keep":
            assert stream.reset_keep(2) == 0
        elif call == "cancel":
            assert stream.cancel() == abi.OK
        stream.close()
    assert fake.sessions_after_a_while(0) == 0


@isolated
def test_a_prefill_that_does_not_come_back(bundle, impatient):
    fake = Fake()
    with abi.Context(bundle) as context:
        with context.open() as stream:
            fake.behave(STUCK_PREFILL)
            with pytest.raises(abi.Error, match="LiteRT-LM has not prefilled the prompt within 2 s"):
                stream.prefill(context.tokenize("abc"))
            with context.open() as other, pytest.raises(abi.Error, match="LiteRT-LM is busy with another stream"):
                other.prefill(context.tokenize("abc"))
        assert fake.sessions_after_a_while(1) == 1  # the thread that is stuck has it
        fake.release()
        assert fake.sessions_after_a_while(0) == 0
        fake.behave(GOOD)
        with context.open() as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == DIGITS


@isolated
def test_a_model_that_does_not_come_up(bundle, impatient):
    fake = Fake()
    fake.behave(STUCK_ENGINE)
    assert "LiteRT-LM has not loaded the model file" in _error(bundle)
    fake.release()


@pytest.mark.parametrize("value", ["0", "-1", "3601", "2s", "x"])
@isolated
def test_the_limit_is_a_number_of_seconds(bundle, monkeypatch, value):
    monkeypatch.setenv("ELIZA_LITERT_TIMEOUT", value)
    assert f"ELIZA_LITERT_TIMEOUT is '{value}': set it to a number of seconds from 1 to 3600" in _error(bundle)


# -- Holding back, and letting go -----------------------------------------------------------------


@isolated
def test_a_client_that_does_not_pull_holds_the_library_back(bundle):
    fake = Fake()
    fake.behave(ENDLESS_DECODE)
    with abi.Context(bundle) as context, context.open() as stream:
        stream.prefill(context.tokenize("abc"))
        pulled = 0
        for more in (1, 100):
            for _ in range(more):
                pulled += len(stream.next(tokens_cap=1).tokens)
            until_idle()
            assert 32 <= fake.pushed - pulled <= 34
    # Its session ends when it has pushed the last: it does not go on after the close.
    assert fake.sessions_after_a_while(0) == 0


@isolated
def test_a_stream_that_is_held_back_lets_another_one_work(bundle):
    with abi.Context(bundle) as context, context.open(max_tokens=100) as first, context.open(max_tokens=9) as second:
        first.prefill(context.tokenize("abc"))
        text = first.next(tokens_cap=1).text
        second.prefill(context.tokenize("abc"))
        assert second.generate() == DIGITS[:9]
        assert text + first.generate() == DIGITS * 5


@isolated
def test_a_stream_that_never_ends_makes_another_one_busy(bundle, impatient):
    fake = Fake()
    fake.behave(ENDLESS_DECODE)
    with abi.Context(bundle) as context, context.open() as endless, context.open() as other:
        endless.prefill(context.tokenize("abc"))
        endless.next()
        with pytest.raises(abi.Error, match="busy with another stream of this model, and has been for 2 s"):
            other.prefill(context.tokenize("abc"))
        endless.cancel()
        fake.behave(GOOD)
        other.prefill(context.tokenize("abc"))
        assert other.generate() == DIGITS


@isolated
def test_a_cancel_ends_a_wait_for_another_stream(bundle, monkeypatch):
    monkeypatch.setenv("ELIZA_LITERT_TIMEOUT", "3600")
    fake = Fake()
    fake.behave(ENDLESS_DECODE)
    with (
        abi.Context(bundle) as context,
        context.open() as endless,
        context.open() as other,
        ThreadPoolExecutor(1) as pool,
    ):
        endless.prefill(context.tokenize("abc"))
        endless.next()
        prefill = pool.submit(other.prefill, context.tokenize("abc"))
        # The first is held back, unless another one waits.
        assert eventually(lambda: fake.pushed > 100)
        assert not prefill.done()
        other.cancel()
        assert prefill.exception().status == abi.CANCELLED
        endless.cancel()


@pytest.mark.parametrize("prompt", ["abc", "abc" * 400], ids=["a prompt of one part", "of three parts"])
@isolated
def test_a_cancel_takes_effect_behind_a_part_of_the_prompt(bundle, monkeypatch, prompt):
    monkeypatch.setenv("ELIZA_LITERT_TIMEOUT", "100")
    fake = Fake()
    with abi.Context(bundle) as context, context.open() as stream, ThreadPoolExecutor(1) as pool:
        fake.behave(STUCK_PREFILL)
        prefill = pool.submit(stream.prefill, context.tokenize(prompt))
        fake.wait_until_stuck()
        stream.cancel()
        fake.release()
        assert prefill.exception().status == abi.CANCELLED
        fake.behave(GOOD)
        assert stream.reset_keep(10) == 0
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == DIGITS


@isolated
def test_after_a_cancel_in_a_call_that_hangs_another_stream_opens_or_is_told_that_it_is_busy(bundle, impatient):
    """The call is given up after the limit, and never keeps the close for longer."""
    fake = Fake()
    with abi.Context(bundle) as context, ThreadPoolExecutor(1) as pool:
        stream = context.open()
        fake.behave(STUCK_PREFILL)
        prefill = pool.submit(stream.prefill, context.tokenize("abc"))
        fake.wait_until_stuck()
        stream.cancel()
        stream.close()
        assert prefill.exception().status in (abi.CANCELLED, abi.FFI_FAULT)
        with context.open() as other:
            with pytest.raises(abi.Error, match="busy with another stream"):
                other.prefill(context.tokenize("abc"))
            fake.release()
            fake.wait_until_stuck(0)
            fake.behave(GOOD)
            other.prefill(context.tokenize("abc"))
            assert other.generate() == DIGITS


# -- Failing --------------------------------------------------------------------------------------


@isolated
def test_an_engine_that_does_not_start(bundle):
    fake = Fake()
    with abi.Context(bundle) as context:
        fake.behave(FAILING_ENGINE)
        for _ in range(2):
            with pytest.raises(abi.Error, match="LiteRT-LM cannot load the model file .* on the cpu") as caught:
                context.open()
            assert "INTERNAL: \ufffd no dispatch today" in caught.value.message
            assert "Download" not in caught.value.message  # its header was read: the file is not to blame
            assert caught.value.status == abi.BUNDLE_INVALID
        fake.behave(GOOD)
        with context.open() as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == DIGITS


@isolated
def test_an_error_while_it_generates(bundle):
    fake = Fake()
    with abi.Context(bundle) as context, context.open() as stream:
        stream.prefill(context.tokenize("abc"))
        fake.behave(FAILING_DECODE)
        assert stream.next().text == "0"
        with pytest.raises(abi.Error, match="LiteRT-LM failed while it generated") as caught:
            stream.next()
        assert caught.value.status == abi.FFI_FAULT
        assert "INTERNAL: \ufffd the device is gone" in caught.value.message
        fake.behave(GOOD)
        stream.prefill(context.tokenize("d", add_special=False))
        stats = stream.stats()
        assert stats["kv_used"] == 1 + len("abc") + len("0") + len("d")
        assert stream.generate() == DIGITS


@isolated
def test_an_error_while_it_prefills(bundle):
    fake = Fake()
    with abi.Context(bundle) as context, context.open() as stream:
        fake.behave(FAILING_PREFILL)
        with pytest.raises(abi.Error, match="LiteRT-LM cannot prefill the prompt") as caught:
            stream.prefill(context.tokenize("abc"))
        assert "INTERNAL: \ufffd no prefill today" in caught.value.message
        fake.behave(GOOD)
        stream.prefill(context.tokenize("abc"))
        assert stream.generate() == DIGITS
