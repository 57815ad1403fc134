"""eliza_inference_last_status: what a function that returns a pointer has no room to say."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_void_p

import pytest

from tests.ffi.fake import THROW_BAD_ALLOC, THROW_ERROR, THROW_INT
from tests.support import abi

OPENING = sorted(name for name, (result, *_) in abi.SIGNATURES.items() if result is abi.HANDLE)
ENDING = sorted(name for name, (result, *_) in abi.SIGNATURES.items() if result is None)


def _zeros(name: str) -> list:
    numbers = (ctypes.c_int, ctypes.c_int32, ctypes.c_size_t, ctypes.c_float)
    return [0 if kind in numbers else kind() for kind in abi.SIGNATURES[name][1:]]


def _in_a_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def _fail(library: abi.Library) -> None:
    assert library.llm_stream_open(None, None, None) is None
    assert library.last_status() == abi.INVALID_ARG


@pytest.fixture
def stream(context):
    with context.open() as stream:
        yield stream


def test_before_the_first_call(fake):
    assert _in_a_thread(fake.library.last_status) == abi.OK


def test_a_bundle_that_is_not_there(fake, tmp_path):
    assert fake.library.create(str(tmp_path / "no-bundle").encode(), None) is None
    assert fake.library.last_status() == abi.BUNDLE_INVALID
    assert fake.library.create(b"", None) is None
    assert fake.library.last_status() == abi.INVALID_ARG


@pytest.mark.parametrize("name", OPENING)
def test_null_for_everything(fake, name):
    assert getattr(fake.library, name)(*_zeros(name)) is None
    assert fake.library.last_status() == abi.INVALID_ARG


@pytest.mark.parametrize("name", sorted(set(OPENING) - {"create", "llm_stream_open"}))
def test_what_opens_nothing(fake, context, name):
    assert getattr(fake.library, name)(context.handle, *_zeros(name)[1:]) is None
    assert fake.library.last_status() == abi.NOT_IMPLEMENTED


@pytest.mark.parametrize(
    ("what", "status"), [(THROW_ERROR, abi.BUNDLE_INVALID), (THROW_BAD_ALLOC, abi.OOM), (THROW_INT, abi.FFI_FAULT)]
)
def test_a_backend_that_does_not_open(fake, context, what, status):
    fake.script(open=lambda *_: fake.throw(what) or 1)
    assert fake.library.llm_stream_open(context.handle, byref(abi.config()), None) is None
    assert fake.library.last_status() == status
    fake.script()
    context.open().close()
    assert fake.library.last_status() == abi.OK


def test_a_backend_that_leaves_a_message(fake, context):
    def fail(context_handle, config, out_error):
        fake.set_error_and_status(out_error, abi.OOM, b"no room")
        return 0

    fake.script(open=fail)
    with pytest.raises(abi.Error, match="no room") as error:
        context.open()
    assert error.value.status == abi.OOM
    # One that comes without a status gets none of a former error.
    fake.script(open=lambda context_handle, config, out_error: fake.set_error(out_error, b"no luck") or 0)
    with pytest.raises(abi.Error, match="no luck") as error:
        context.open()
    assert error.value.status == abi.FFI_FAULT


def test_a_config_that_is_none(fake, context):
    assert fake.library.llm_stream_open(context.handle, None, None) is None
    assert fake.library.last_status() == abi.INVALID_ARG


def test_functions_that_return_their_status(fake, stream):
    for status in [-7, -5, -99, 0, 1, 2**31 - 1]:
        fake.script(next=lambda *_, status=status: status, cancel=lambda *_, status=status: status)
        memory = (ctypes.c_int32(), ctypes.c_size_t(), ctypes.create_string_buffer(8))
        tokens, count, text = map(byref, memory)
        assert fake.library.llm_stream_next(stream.handle, tokens, 1, count, text, 8, None, None, None) == status
        assert fake.library.last_status() == min(status, 0)
        assert fake.library.llm_stream_cancel(stream.handle) == status
        assert fake.library.last_status() == min(status, 0)


def test_a_success_that_returns_a_pointer_or_a_count(fake, context):
    _fail(fake.library)
    other = fake.library.call("create", str(context.library.path.parent).encode())
    assert fake.library.last_status() == abi.OK
    fake.library.destroy(other)
    _fail(fake.library)
    assert context.detokenize(b"abc") == "abc"
    assert fake.library.last_status() == abi.OK


def test_tidying_up_leaves_it_alone(fake, tmp_path):
    context = abi.Context(tmp_path, fake.library)
    stream = context.open()
    error = c_void_p()
    assert fake.library.vad_open(context.handle, 16000, byref(error)) is None
    assert fake.library.take_string(error) is not None  # freed
    stream.close()
    context.close()
    for name in ENDING:
        getattr(fake.library, name)(None)
    for name in abi.SIGNATURES:
        if name.endswith("_supported"):
            getattr(fake.library, name)()
    fake.library.abi_version()
    assert fake.library.last_status() == fake.library.last_status() == abi.NOT_IMPLEMENTED


def test_each_thread_has_its_own(fake, context):
    _fail(fake.library)
    assert _in_a_thread(lambda: (fake.library.last_status(), context.detokenize(b"a"))) == (abi.OK, "a")
    assert fake.library.last_status() == abi.INVALID_ARG

    def fails():
        fake.library.vad_open(context.handle, 16000, None)
        return fake.library.last_status()

    assert _in_a_thread(fails) == abi.NOT_IMPLEMENTED
    assert fake.library.last_status() == abi.INVALID_ARG


def test_calls_of_a_callback(fake, stream):
    inside = []

    def callback(session, *_):
        _fail(fake.library)
        inside.append(fake.library.last_status())
        return 0

    fake.script(prefill=callback)
    stream.prefill([1])
    assert inside == [abi.INVALID_ARG]
    assert fake.library.last_status() == abi.OK
