"""Every symbol of the ABI is there, and what is not implemented says so."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p

import pytest

from tests.support import abi

IMPLEMENTED = {
    "abi_version", "last_status", "create", "destroy", "free_string", "free_tokens", "mmap_acquire", "mmap_evict",
    "llm_stream_open", "llm_stream_prefill", "llm_stream_next", "llm_stream_cancel", "llm_stream_save_slot",
    "llm_stream_restore_slot", "llm_stream_reset", "llm_stream_reset_keep", "llm_stream_close",
    "llm_stream_set_seed", "llm_stream_stats", "llm_backend_report",
    "tokenize", "detokenize", "model_meta", "json_schema_to_gbnf", "embed", "llm_eot_score", "set_verifier_callback",
}  # fmt: skip

# What each *_supported answers.
SUPPORTED = {
    "llm_stream_supported": 1,
    "tokenize_supported": 1,
    "llm_mtp_supported": 1,
    "llm_kv_quant_supported": 1,
    "embed_supported": 1,
    "llm_eot_supported": 1,
    "tts_stream_supported": 0,
    "asr_timestamps_supported": 0,
    "asr_stream_supported": 0,
    "vad_supported": 0,
    "wakeword_supported": 0,
    "speaker_supported": 0,
    "diariz_supported": 0,
    "kokoro_supported": 0,
    "vision_supported": 0,
    "vision_stream_supported": 0,
}

# They accept anything, and there is nothing that they could end.
ENDING = {name for name in abi.SIGNATURES if name.endswith("_close") or name == "speaker_free"} - IMPLEMENTED

OTHERS = sorted(abi.SIGNATURES.keys() - IMPLEMENTED - SUPPORTED.keys() - ENDING)


def _present(name: str) -> bool:
    return abi.load().abi_version() == b"15" or name not in abi.NEWER_THAN_12


def _arguments(name: str, handle: int | None) -> list:
    """A handle for the first argument, and nothing for the others."""
    _, *kinds = abi.SIGNATURES[name]
    numbers = (ctypes.c_int, ctypes.c_int32, ctypes.c_size_t, ctypes.c_float)
    return [handle] + [0 if kind in numbers else kind() for kind in kinds[1:]]


@pytest.fixture
def context(tmp_path):
    with abi.Context(tmp_path) as context:
        yield context


@pytest.mark.parametrize("name", SUPPORTED)
def test_supported(name):
    if _present(name):
        assert getattr(abi.load(), name)() == SUPPORTED[name]


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_implemented_says_so(name, context):
    if not _present(name):
        return
    library = abi.load()
    arguments = _arguments(name, context.handle)
    failure = None if abi.SIGNATURES[name][0] is abi.HANDLE else abi.NOT_IMPLEMENTED
    if abi.SIGNATURES[name][-1] is not abi.ERROR:
        assert getattr(library, name)(*arguments) == failure
        assert library.last_status() == abi.NOT_IMPLEMENTED
        return
    assert getattr(library, name)(*arguments) == failure  # without a place for the message
    error = c_void_p()
    assert getattr(library, name)(*arguments[:-1], byref(error)) == failure
    assert library.last_status() == abi.NOT_IMPLEMENTED
    message = library.take_string(error)
    probes = [word.split("(")[0].removeprefix(abi.PREFIX) for word in message.split() if word.startswith(abi.PREFIX)]
    assert probes and SUPPORTED[probes[0]] == 0, message


@pytest.mark.parametrize("name", sorted(ENDING))
def test_ending_what_never_was(name, context):
    end = getattr(abi.load(), name)
    end(None)
    if name != "speaker_free":
        end(context.handle)
        end(12345)
    assert context.library.call("mmap_evict", context.handle, b"text") == abi.OK


@pytest.mark.parametrize("name", sorted(abi.NEWER_THAN_12))
def test_symbols_newer_than_12(name):
    assert hasattr(abi.load(), name) == (abi.load().abi_version() == b"15")
