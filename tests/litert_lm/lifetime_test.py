"""Opening, closing, sharing: nothing is left behind, and nothing is called that has gone."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import pytest

from tests.support import abi, memory
from tests.support.isolated import isolated

PROMPT = "hello world the quick brown"


def _cycle(bundle: Path, context: abi.Context | None = None) -> None:
    """Opens, generates and closes: all of it, or on a context that stays."""
    if context is None:
        with abi.Context(bundle) as own:
            return _cycle(bundle, own)
    with context.open(max_tokens=5) as stream:
        stream.prefill(context.tokenize(PROMPT))
        stream.generate()


@pytest.mark.skipif(not memory.MEASURABLE, reason="reads /proc")
@pytest.mark.parametrize("keep_context", [False, True], ids=["loading the model each time", "sharing it"])
@isolated
def test_200_cycles_keep_no_memory(bundle, keep_context):
    context = abi.Context(bundle) if keep_context else None
    # A leaked engine would be 200 times some megabytes, a leaked session of the library 200 KV caches of 128 KB.
    batches = memory.growths(lambda: _cycle(bundle, context), 200, flat=8 << 20, warm_up=50)
    assert batches[-1] < 8 << 20, batches


@isolated
def test_closing_in_the_middle_of_a_generation(bundle):
    with abi.Context(bundle) as context:
        for pulled in range(50):
            with context.open() as stream:
                stream.prefill(context.tokenize(PROMPT))
                for _ in range(pulled % 5):
                    stream.next(tokens_cap=1)


@isolated
def test_closing_while_another_thread_is_inside(bundle):
    with abi.Context(bundle) as context:
        for _ in range(20):
            stream = context.open()
            stream.prefill(context.tokenize(PROMPT))
            errors = []
            inside = threading.Event()

            def pull(stream=stream, errors=errors, inside=inside):
                try:
                    while not stream.next(tokens_cap=1).ended:
                        inside.set()
                except abi.Error as error:
                    errors.append(error.status)
                finally:
                    inside.set()

            puller = threading.Thread(target=pull)
            puller.start()
            inside.wait()
            stream.library.llm_stream_close(stream.handle)
            puller.join()
            assert errors in ([], [abi.CANCELLED], [abi.INVALID_ARG])


@isolated
def test_a_stream_outlives_its_context_as_an_error(bundle):
    context = abi.Context(bundle)
    stream = context.open()
    stream.prefill(context.tokenize(PROMPT))
    stream.next()
    context.close()
    with pytest.raises(abi.Error) as caught:
        stream.next()
    assert caught.value.status == abi.INVALID_ARG


@isolated
def test_streams_of_a_model_share_it(bundle):
    """A second engine would load the file once more: then the loader, or mmap, would show it."""

    def mappings() -> int:
        return sum(".litertlm" in line for line in Path("/proc/self/maps").read_text().splitlines())

    with abi.Context(bundle) as first, abi.Context(bundle) as second:
        with first.open() as stream:
            stream.prefill(first.tokenize(PROMPT))
            alone = mappings()
            assert alone > 0
            with second.open() as other:
                other.prefill(second.tokenize(PROMPT))
                assert mappings() == alone
            with first.open(context_size=64) as larger:
                larger.prefill(first.tokenize(PROMPT))
                assert mappings() > alone
    assert mappings() == 0


@isolated
def test_nothing_is_written_beside_the_model(tmp_path, bundle):
    (tmp_path / "text").mkdir()
    model = tmp_path / "text" / "model.litertlm"
    model.write_bytes((bundle / "text" / "tiny_gemma3.litertlm").read_bytes())
    _cycle(tmp_path)
    assert [*(tmp_path / "text").iterdir()] == [model]
    assert [*tmp_path.iterdir()] == [tmp_path / "text"]


@isolated
def test_a_cache_directory_is_used_where_one_is_named(tmp_path, bundle, monkeypatch):
    monkeypatch.setenv("ELIZA_LITERT_CACHE_DIR", str(tmp_path))
    _cycle(bundle)
    assert any(tmp_path.iterdir())
    monkeypatch.setenv("ELIZA_LITERT_CACHE_DIR", str(tmp_path / "gone"))
    with (
        abi.Context(bundle) as context,
        pytest.raises(abi.Error, match="Cache directory does not exist.*ELIZA_LITERT_CACHE_DIR"),
    ):
        context.open()


@isolated
def test_the_library_is_loaded_for_its_models_only(tmp_path):
    """A report on a bundle of other files asks whether it is there; a stream that is not its does not."""
    (tmp_path / "text").mkdir()
    with abi.Context(tmp_path) as context:
        with pytest.raises(abi.Error):
            context.open()
        assert "litert-lm.so" not in Path("/proc/self/maps").read_text()
        context.report()


@isolated
def test_unloading_and_loading_again(bundle):
    path = abi.library_path()
    for _ in range(3):
        library = abi.Library(path)
        with abi.Context(bundle, library) as context, context.open(max_tokens=20) as stream:
            stream.prefill(context.tokenize(PROMPT))
            stream.next()
        handle = library._dll._handle
        del library, context, stream
        assert ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle)) == 0
