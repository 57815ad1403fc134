"""The helpers themselves: a check that cannot fail would look just like one that holds."""

import ctypes
import os
import re
import signal
import sys
import threading

import pytest

from tests.support import abi, memory, models
from tests.support import isolated as isolated_module
from tests.support.guarded import guarded
from tests.support.isolated import isolated
from tests.support.runfile import runfile
from tests.support.waiting import eventually, threads_of, until_idle


def _fails(body) -> str:
    with pytest.raises(pytest.fail.Exception) as failure:
        isolated(body)()
    return str(failure.value)


def test_isolated_passes_when_the_body_returns():
    isolated(lambda: os.environ.update(SET_IN_THE_CHILD="1"))()
    assert "SET_IN_THE_CHILD" not in os.environ


def test_isolated_reports_an_exception_with_its_line():
    def body():
        assert 1 + 1 == 3

    assert "assert" in _fails(body)


def test_isolated_reports_a_signal():
    assert "SIGABRT" in _fails(os.abort)
    assert "SEGV" in _fails(lambda: os.kill(os.getpid(), signal.SIGSEGV))  # or ASan's report of it


def test_isolated_says_where_a_body_hangs(monkeypatch):
    monkeypatch.setattr(isolated_module, "_LIMIT_S", 1)

    def hangs_here():
        threading.Event().wait()

    said = _fails(hangs_here)
    assert "hung for 1 s" in said and "hangs_here" in said


def test_isolated_reports_an_exit():
    assert "exit(3)" in _fails(lambda: os._exit(3))
    assert "SystemExit" in _fails(lambda: exit(0))


@pytest.mark.parametrize("descriptor", [1, 2])
def test_isolated_reports_output(descriptor):
    with pytest.raises(AssertionError, match="stdout or stderr"):
        isolated(lambda: os.write(descriptor, b"x"))()


def test_eventually():
    answers = iter([False, False, True])
    assert eventually(lambda: next(answers))
    assert not eventually(lambda: False, limit_s=0.05)


def test_until_idle_waits_for_threads_that_compute():
    computing, stop, stopped = threading.Event(), threading.Event(), threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(range(1000))
            computing.set()
        stopped.wait()  # asleep, and no less there

    thread = threading.Thread(target=compute)
    thread.start()
    computing.wait()
    with pytest.raises(AssertionError, match="go on computing"):
        until_idle(limit_s=1)
    stop.set()
    until_idle()
    assert thread.is_alive()
    stopped.set()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_threads_are_counted():
    before, stop = threads_of(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert threads_of() == threads_of(os.getpid()) == before + 1
    stop.set()
    thread.join()
    assert eventually(lambda: threads_of() == before)


@pytest.mark.skipif(not memory.MEASURABLE, reason="reads /proc")
def test_memory_that_is_lost_each_time_is_seen():
    lost = []
    assert min(memory.growths(lambda: lost.append(os.urandom(1 << 17)), 20, flat=1 << 20, warm_up=1)) >= 1 << 20
    assert memory.growths(lambda: os.urandom(1 << 17), 20, flat=1 << 20, warm_up=1)[-1] < 1 << 20


def test_guarded_memory_ends_where_it_says():
    isolated(lambda: ctypes.string_at(guarded(b"abc"), 3))()
    assert "SEGV" in _fails(lambda: ctypes.string_at(guarded(b"abc"), 4))


def test_models_are_found():
    assert models.text_model("tiny_llama_cycle").read_bytes()[:4] == b"GGUF"
    assert models.drafter("tiny_gemma4_mtp").read_bytes()[:4] == b"GGUF"


def test_texts():
    assert models.alphabet("abc", 12) == "defghijklmno"
    assert models.alphabet("z", 3) == " ab"
    assert models.utf8("a", 4) == "😀b€c"


def test_a_missing_runfile_says_what_to_do():
    with pytest.raises(FileNotFoundError, match="name its target"):
        runfile("no/such/file")


def test_every_function_of_the_header_is_bound():
    header = runfile("native/include/eliza-inference-ffi.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    assert set(re.findall(r"\beliza_inference_(\w+)\(", code)) == set(abi.SIGNATURES)
