"""The session through the C ABI: what a context holds after each call, on models whose text shows it."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.llama_cpp import recall
from tests.support import abi, models, sanitizers
from tests.support.isolated import isolated
from tests.support.waiting import eventually


@pytest.fixture(params=recall.ARCHITECTURES)
def context(request):
    with abi.Context(recall.bundle(request.param)) as context:
        yield context


# --- context -------------------------------------------------------------------------------------


def test_a_full_context_ends_the_generation(context):
    with context.open(context_size=16) as stream:
        stream.prefill(context.tokenize("Aabcdefgh"))  # 10 with the token at the start
        assert stream.generate() == recall.text("A", "h", 6)
        assert stream.stats()["stop_reason"] == "context_full"
        assert stream.stats()["kv_used"] == stream.stats()["kv_capacity"] == 16
        with pytest.raises(abi.Error, match="only 0 of the context's 16 are free"):
            stream.prefill([331])


def test_a_prompt_of_exactly_the_contexts_size_gets_one_token(context):
    prompt = context.tokenize("xxxxxxxxxxxAabc")
    assert len(prompt) == 16
    with context.open(context_size=16) as stream:
        for _ in range(2):
            stream.prefill(prompt)
            step = stream.next()
            assert step.ended and step.text == recall.text("A", "c", 1)
            assert stream.stats()["stop_reason"] == "context_full"
            # It has no place in the context.
            assert stream.stats()["kv_used"] == stream.stats()["kv_capacity"] == 16
            assert stream.stats()["generated_tokens"] == 1
            assert stream.next() == abi.Step(True, [], "", 0, 0)
            with pytest.raises(abi.Error, match="only 0 of the context's 16 are free"):
                stream.prefill([331])
            assert stream.reset_keep(15) == 15
            stream.prefill(prompt[15:])
            assert stream.generate() == recall.text("A", "c", 1)
            stream.reset()
    with context.open(context_size=16, max_tokens=1) as stream:
        stream.prefill(prompt)
        assert stream.generate() == recall.text("A", "c", 1)
        assert stream.stats()["stop_reason"] == "context_full"


def test_a_token_without_a_place_that_waits_is_not_taken_for_one_of_the_prompt():
    with abi.Context(models.bundle("tiny_llama_utf8")) as context, context.open(context_size=16) as stream:
        (letter,) = context.tokenize("b", add_special=False)
        prompt = [letter] * 13 + context.tokenize("\N{GRINNING FACE}", add_special=False)[:3]
        stream.prefill(prompt)
        with pytest.raises(abi.Error, match="needs 4 bytes"):  # an invalid byte on its own: U+FFFD
            stream.next(text_cap=3)
        assert stream.stats()["kv_used"] == 16
        assert stream.reset_keep(16) == 16


def test_the_context_size_in_order_of_who_says_it(context, monkeypatch):
    def capacity(**config) -> int:
        with context.open(**config) as stream:
            return stream.stats()["kv_capacity"]

    assert capacity() == 4096  # the model's
    monkeypatch.setenv("ELIZA_CONTEXT_SIZE", "300")
    assert capacity() == 300
    assert capacity(context_size=200) == 200
    for bad in ["0", "-1", "1e3", "many", "99999999999"]:
        monkeypatch.setenv("ELIZA_CONTEXT_SIZE", bad)
        with pytest.raises(abi.Error, match=f"ELIZA_CONTEXT_SIZE is '{bad}'"):
            capacity()


def test_the_manifest_comes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ELIZA_CONTEXT_SIZE", "300")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "m.gguf").symlink_to(next(recall.bundle("llama").glob("text/*.gguf")))
    file = {"path": "text/m.gguf", "sha256": "0" * 64, "ctx": 123, "runtimeClass": "llama-cpp"}
    manifest = {"id": "recall", "tier": "test", "version": "1", "files": {"text": [file]}}
    (tmp_path / "eliza-1.manifest.json").write_text(json.dumps(manifest))
    with abi.Context(tmp_path) as context:
        for config, size in [({}, 123), ({"context_size": 50}, 50)]:
            with context.open(**config) as stream:
                assert stream.stats()["kv_capacity"] == size


def test_a_context_beyond_memory_is_refused_with_an_estimate(context):
    message = (
        r"context_size is 2000000000 tokens, which needs about \d+ MiB where \d+ MiB of memory are available; "
        r"about \d+ tokens fit"
    )
    with pytest.raises(abi.Error, match=message):
        context.open(context_size=2_000_000_000)


@pytest.mark.parametrize("threads", ["0", "-1", "513", "two", "2 ", "1.5"])
def test_threads_that_are_no_number(context, threads, monkeypatch):
    monkeypatch.setenv("ELIZA_THREADS", threads)
    with pytest.raises(abi.Error, match=f"ELIZA_THREADS is '{threads}': set it to a number from 1 to "):
        context.open(context_size=64)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "pthread_setattr_default_np"), reason="glibc alone has it")
@isolated
def test_threads_that_the_system_does_not_start():
    """As where memory or their number is limited: fewer will do."""
    libc = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(256)
    assert libc.pthread_attr_init(attributes) == 0
    assert libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(1 << 47)) == 0  # all of the address space
    assert libc.pthread_setattr_default_np(attributes) == 0
    os.environ["ELIZA_THREADS"] = "3"
    with abi.Context(recall.bundle("llama")) as context, context.open(max_tokens=3, context_size=256) as stream:
        stream.prefill(context.tokenize("xAxabc"))
        assert stream.generate() == "def"


@pytest.mark.skipif(sanitizers.ASAN or sanitizers.TSAN, reason="a sanitizer's own memory is beyond any such limit")
@isolated
def test_an_open_with_too_little_memory():
    """Wherever it runs out."""
    with abi.Context(recall.bundle("llama")) as context:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        statuses = []
        for more in range(0, 16 << 20, 128 << 10):
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))
            try:
                context.open(context_size=4096).close()
                statuses.append(abi.OK)
            except abi.Error as error:
                statuses.append(error.status)
            except MemoryError:  # Python's own
                pass
    assert set(statuses) == {abi.OK, abi.OOM}, statuses


# --- appending, and keeping ----------------------------------------------------------------------


def test_a_prefill_goes_on_where_the_last_generation_ended(context):
    with context.open(max_tokens=3, context_size=256) as stream:
        stream.prefill(context.tokenize("xAxabc"))
        assert stream.generate() == "def"
        stream.prefill(context.tokenize("opq", add_special=False))
        assert stream.generate() == "rst"
        assert stream.stats()["kv_used"] == 7 + 3 + 3 + 3
        assert stream.stats()["prompt_tokens"] == 10
        assert stream.stats()["generated_tokens"] == 6


def test_tokens_nobody_saw_are_not_in_the_context():
    """A token whose text does not fit waits, and a prefill drops it: the caller cannot know of it."""
    with abi.Context(models.bundle("tiny_llama_utf8")) as context, context.open(context_size=64) as stream:
        stream.prefill(context.tokenize("a"))
        for _ in range(3):
            assert stream.next(tokens_cap=1).text == ""
        with pytest.raises(abi.Error, match="needs 5 bytes"):
            stream.next(text_cap=4)
        assert stream.stats()["kv_used"] == 2 + 4
        stream.prefill(context.tokenize("b", add_special=False))
        assert stream.stats()["kv_used"] == 2 + 3 + 1


def test_reset_keep_remembers_what_it_keeps_and_nothing_else(context):
    with context.open(max_tokens=8, context_size=256) as stream:
        stream.prefill(context.tokenize("xxAxxB"))  # 7 tokens: the A is the fourth
        for keep, marker in [(6, "A"), (3, "")]:
            assert stream.reset_keep(keep) == keep
            stream.prefill(context.tokenize("abc", add_special=False))
            assert stream.generate() == recall.text(marker, "c", 8)


def test_reset_keep_of_more_than_there_is_and_of_nothing(context):
    with context.open(max_tokens=2, context_size=256) as stream:
        assert stream.reset_keep(5) == 0
        stream.prefill(context.tokenize("Aabc"))
        assert stream.generate() == "de"
        assert stream.reset_keep(1000) == 7  # 5 of the prompt and 2
        with pytest.raises(abi.Error, match="before any prefill"):
            stream.next()
        stream.prefill(context.tokenize("s", add_special=False))
        assert stream.generate() == "tu"
        assert stream.reset_keep(0) == 0
        stream.prefill(context.tokenize("c"))
        assert stream.generate() == "cc"


def test_a_sliding_window_that_has_moved_on_keeps_nothing():
    """llama.cpp would say yes, and go on without the kept tokens: the A would be forgotten."""
    with abi.Context(recall.bundle("gemma3")) as context, context.open(max_tokens=8, context_size=2048) as stream:
        stream.prefill(context.tokenize("xxAxx" + "xyz" * 500))
        assert stream.reset_keep(6) == 0
        assert stream.stats()["kv_used"] == 0
        stream.prefill(context.tokenize("xxAxxabc"))
        assert stream.generate() == recall.text("A", "c", 8)


def test_a_sliding_window_keeps_what_is_near_its_end():
    with abi.Context(recall.bundle("gemma3")) as context, context.open(max_tokens=8, context_size=2048) as stream:
        tail = context.tokenize("xxAxxBxx")
        prompt = context.tokenize("xyz" * 500) + tail[1:]
        stream.prefill(prompt)
        keep = len(prompt) - 4  # up to the A and two more
        assert stream.reset_keep(keep) == keep
        stream.prefill(context.tokenize("abc", add_special=False))
        assert stream.generate() == recall.text("A", "c", 8)


# --- cancelling ----------------------------------------------------------------------------------


def assert_cancelled(call, *arguments) -> None:
    with pytest.raises(abi.Error) as error:
        call(*arguments)
    assert error.value.status == abi.CANCELLED


def test_statistics_do_not_wait_for_a_prefill(context):
    """How far it is shows meanwhile, a chunk at a time."""
    prompt = context.tokenize("xyz" * 1300)
    with context.open(context_size=4096) as stream, ThreadPoolExecutor(1) as pool:
        seen = set()
        # A prefill that ended before the first look shows nothing: then once more.
        for _ in range(20):
            prefill = pool.submit(stream.prefill, prompt)
            while not prefill.done():
                seen.add(stream.stats()["kv_used"])
            prefill.result()
            assert stream.stats()["kv_used"] == stream.stats()["prompt_tokens"] == len(prompt)
            stream.reset()
            assert stream.stats()["kv_used"] == stream.stats()["prompt_tokens"] == 0
            if seen - {0, len(prompt)}:
                break
        assert seen - {0, len(prompt)}, "no statistics while the prompt was decoded"
        assert all(used == len(prompt) or used % 512 == 0 for used in seen)


@pytest.mark.skipif(sanitizers.TSAN, reason="a chunk takes minutes under TSan")
def test_cancel_during_a_prefill_leaves_what_was_decoded(demo_bundle):
    """On the demo model, whose prefill takes a while; afterwards it answers as if nothing had been."""
    with abi.Context(demo_bundle) as context, context.open(max_tokens=12, context_size=4096) as stream:
        question = context.tokenize("The capital of France is")
        stream.prefill(question)
        answer = stream.generate()
        stream.reset()
        with ThreadPoolExecutor(1) as pool:
            prefill = pool.submit(stream.prefill, question * 600)
            assert eventually(lambda: stream.stats()["kv_used"] > 0)
            stream.cancel()
        assert prefill.exception().status == abi.CANCELLED
        assert_cancelled(stream.next)
        assert 0 < stream.stats()["kv_used"] < len(question) * 600

        assert stream.reset_keep(len(question)) <= len(question)
        stream.reset()
        stream.prefill(question)
        assert stream.generate() == answer


def test_a_cancel_ends_a_prefill_of_4000_tokens_within_a_chunk(context):
    prompt = context.tokenize("xyz" * 1333)
    assert len(prompt) == 4000
    with context.open(context_size=4096) as stream, ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            stream.reset()
            prefill = pool.submit(stream.prefill, prompt)
            while not prefill.done() and stream.stats()["kv_used"] == 0:
                pass
            stream.cancel()
            decoded = stream.stats()["kv_used"]
            if prefill.exception() is not None:
                break
        assert prefill.exception().status == abi.CANCELLED
        assert stream.stats()["kv_used"] <= decoded + 512


def test_a_cancelled_prefill_takes_what_waited_only_once(context):
    """A token waits, for its text did not fit; the prefill drops it, and is cancelled when a part of it is decoded."""
    prompt = context.tokenize("Aabc")
    more = context.tokenize("xyz" * 1300, add_special=False)
    with context.open(context_size=4096) as stream, ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            stream.reset()
            stream.prefill(prompt)
            with pytest.raises(abi.Error, match="text_cap is 1"):
                stream.next(text_cap=1)
            prefill = pool.submit(stream.prefill, more)
            while not prefill.done() and stream.stats()["kv_used"] <= len(prompt) + 1:
                pass
            stream.cancel()
            if prefill.exception() is not None:
                break
        assert prefill.exception().status == abi.CANCELLED
        used = stream.stats()["kv_used"]
        assert stream.reset_keep(10**6) == used > len(prompt)


# --- sampling ------------------------------------------------------------------------------------


@pytest.fixture
def noise():
    with abi.Context(models.bundle("tiny_llama_random")) as context:
        yield context


def test_a_seed_repeats_and_others_differ(noise):
    def text(seed: int | None) -> str:
        with noise.open(max_tokens=40, temperature=1.5, context_size=128) as stream:
            if seed is not None:
                assert stream.library.llm_stream_set_seed(stream.handle, seed) == abi.OK
            stream.prefill(noise.tokenize("abc"))
            return stream.generate()

    assert text(1) == text(1)
    assert text(2**63) == text(2**63)
    assert len({text(1), text(2), text(2**32 + 1), text(2**63), text(None), text(None)}) == 6


def test_a_reset_starts_the_seed_again(noise):
    with noise.open(max_tokens=40, temperature=1.5, context_size=128) as stream:
        stream.library.llm_stream_set_seed(stream.handle, 7)
        texts = []
        for _ in range(2):
            stream.prefill(noise.tokenize("abc"))
            texts.append(stream.generate())
            stream.reset()
        assert texts[0] == texts[1]


# --- options -------------------------------------------------------------------------------------


def test_what_only_tunes_is_listed_as_ignored(context):
    with context.open(context_size=64, n_gpu_layers=-1) as stream:
        assert stream.stats()["ignored_options"] == ["n_gpu_layers"]
        assert stream.stats()["device"] == "cpu"
    gpu = context.report()["gpu"]
    assert gpu["devices"] == [] and "no code for GPUs; --config=linux_cuda" in gpu["reason"]


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"])
def test_cache_types_by_name(context, name):
    with context.open(max_tokens=8, context_size=256, cache_type_k=name, cache_type_v=name) as stream:
        stream.prefill(context.tokenize("xAxabc"))
        assert stream.generate() == recall.text("A", "c", 8)


def test_an_unknown_cache_type_lists_the_known(context):
    for field in ["cache_type_k", "cache_type_v"]:
        with pytest.raises(abi.Error, match=f"{field} is 'q3_7'.*; known are f32, f16, bf16, q8_0"):
            context.open(**{field: "q3_7"})


# --- the log -------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_the_log_goes_where_it_is_told_and_nowhere_else(named, tmp_path):
    @isolated
    def check():
        log = tmp_path / "log"
        os.environ.pop("ELIZA_LOG", None)
        if named:
            os.environ["ELIZA_LOG"] = str(log)
        # A library of its own: the variable is read once.
        copy = shutil.copy(abi.library_path(), tmp_path / "copy.so")
        with abi.Context(recall.bundle("llama"), abi.Library(copy)) as context, context.open(context_size=64) as stream:
            stream.prefill(context.tokenize("abc"))
        assert log.exists() == named
        if named:
            lines = log.read_text().splitlines()
            assert any("n_ctx" in line for line in lines)
            assert all(line.startswith("llama.cpp: ") for line in lines)

    check()


@pytest.mark.parametrize("read", [True, False])
def test_a_log_that_nobody_reads_holds_nothing_up(read, tmp_path):
    """A pipe, whose reader has left, or never came. Its signal ends a process that does not look out for it."""

    @isolated
    def check():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        log = tmp_path / "log"
        os.mkfifo(log)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK) if read else None
        os.environ["ELIZA_LOG"] = str(log)
        copy = shutil.copy(abi.library_path(), tmp_path / "copy.so")
        with abi.Context(recall.bundle("llama"), abi.Library(copy)) as context:
            for _ in range(2):
                with context.open(context_size=64) as stream:
                    stream.prefill(context.tokenize("abc"))
                if reader is not None:
                    assert b"llama.cpp: " in os.read(reader, 1 << 16)
                    os.close(reader)
                    reader = None
        assert signal.SIGPIPE not in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    check()
