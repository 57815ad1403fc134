"""Weights are loaded once, and freed."""

from __future__ import annotations

import gc
import os
import shutil
import threading

import _llama_cpp_testing as llama
import pytest

from tests.support import models
from tests.support.isolated import isolated


@pytest.fixture
def path(tmp_path):
    """A model file that no other test has loaded."""
    copy = tmp_path / "model.gguf"
    shutil.copy(models.text_model("tiny_llama_cycle"), copy)
    return str(copy)


def test_one_file_is_one_model(path, tmp_path):
    first = llama.acquire_model(path)
    assert llama.acquire_model(path).address == first.address
    # Links and other spellings are the same file.
    link = tmp_path / "link.gguf"
    link.symlink_to(path)
    assert llama.acquire_model(str(link)).address == first.address
    assert llama.acquire_model(str(tmp_path / "." / "model.gguf")).address == first.address
    # Other GPU layers are other weights.
    assert llama.acquire_model(path, n_gpu_layers=3).address != first.address


def test_a_file_that_was_replaced_is_another_model(path):
    first = llama.acquire_model(path)
    replacement = path + ".new"
    shutil.copy(path, replacement)
    os.utime(replacement, ns=(1, 1))
    os.replace(replacement, path)
    assert llama.acquire_model(path).address != first.address


def test_the_last_user_frees(path):
    def models_mapped() -> int:
        with open("/proc/self/maps") as maps:
            return sum(path in line for line in maps)

    model = llama.acquire_model(path)
    other = llama.acquire_model(path)
    assert models_mapped() > 0
    del model
    gc.collect()
    assert models_mapped() > 0
    del other
    gc.collect()
    assert models_mapped() == 0


def test_a_vocabulary_comes_from_the_model_where_that_is_loaded(path):
    alone = llama.acquire_vocabulary(path)
    assert alone.vocab_only
    model = llama.acquire_model(path)
    assert not model.vocab_only
    assert llama.acquire_vocabulary(path).address == model.address


def test_threads_that_come_at_once_share_one_load(path):
    threads = 8
    barrier = threading.Barrier(threads)
    loaded = [None] * threads

    def load(i: int) -> None:
        barrier.wait()
        loaded[i] = llama.acquire_model(path)

    workers = [threading.Thread(target=load, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({model.address for model in loaded}) == 1


def test_a_failed_load_does_not_stick(tmp_path, path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="-3: the model file .*broken.gguf"):
            llama.acquire_model(str(broken))
    shutil.copy(path, broken)
    assert llama.acquire_model(str(broken)).vocab_size == 362


def test_a_load_that_is_stopped(path):
    stop = llama.StopFlag()
    assert llama.load_model(path, stop).vocab_size == 362
    stop.set()
    for load in (lambda: llama.load_model(path, stop), lambda: llama.acquire_model(path, stop=stop)):
        with pytest.raises(RuntimeError, match="-7: the context was destroyed"):
            load()
    assert llama.acquire_model(path).vocab_size == 362


def test_threads_that_are_stopped_leave_the_load_to_others(path):
    for attempt in range(20):
        threads = 8
        stops = [llama.StopFlag() if i % 2 else None for i in range(threads)]
        barrier = threading.Barrier(threads + 1)
        loaded = [None] * threads

        def load(i, stops=stops, barrier=barrier, loaded=loaded) -> None:
            barrier.wait()
            try:
                loaded[i] = llama.acquire_model(path, stop=stops[i])
            except RuntimeError as error:
                assert str(error).startswith("-7")

        workers = [threading.Thread(target=load, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        barrier.wait()
        threading.Event().wait(attempt * 0.0005)
        for stop in filter(None, stops):
            stop.set()
        for worker in workers:
            worker.join()
        assert len({loaded[i].address for i in range(0, threads, 2)}) == 1
        assert {model.address for model in loaded if model} == {loaded[0].address}


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(RuntimeError, match="-3: .*nowhere.gguf cannot be opened: No such file"):
        llama.acquire_model(str(tmp_path / "nowhere.gguf"))


def test_a_request_for_the_cpu_wakes_no_gpu(path):
    """A GPU is registered that ends the process when it is woken. llama.cpp's defaults do wake it."""

    def use(generate) -> None:
        llama.register_fake_gpu()
        generate()

    def on_the_cpu() -> None:
        session = llama.Session(path, max_tokens=4, context_size=64)
        session.prefill([1, 331, 332])
        assert len(session.generate()) == 4

    isolated(use)(on_the_cpu)
    with pytest.raises(pytest.fail.Exception, match="died of SIGABRT"):
        isolated(use)(lambda: llama.plain_loop_with_all_devices(path))
