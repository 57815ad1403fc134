"""The C ABI in ctypes: every symbol, and two small classes for tests that just need text.

    with abi.Context(bundle) as context, context.open(max_tokens=8) as stream:
        stream.prefill(context.tokenize("abc"))
        text = stream.generate()

The functions of the library are attributes of `load()`, with their signatures set. `call` adds the `out_error` and
raises Error where the function fails.

The signatures are written out here and not read from the header, so that the two check each other.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    byref,
    c_char_p,
    c_float,
    c_int,
    c_int8,
    c_int32,
    c_size_t,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from pathlib import Path

from tests.support.runfile import runfile

OK = 0
NOT_IMPLEMENTED = -1
INVALID_ARG = -2
BUNDLE_INVALID = -3
FFI_FAULT = -4
OOM = -5
ABI_MISMATCH = -6
CANCELLED = -7

PREFIX = "eliza_inference_"


class Config(ctypes.Structure):
    """eliza_llm_stream_config_t of ABI 15, 88 bytes; Config80 is its part that older clients know."""

    _fields_ = [
        ("max_tokens", c_int32),
        ("temperature", c_float),
        ("top_p", c_float),
        ("top_k", c_int32),
        ("repeat_penalty", c_float),
        ("slot_id", c_int32),
        ("prompt_cache_key", c_char_p),
        ("draft_min", c_int32),
        ("draft_max", c_int32),
        ("mtp_drafter_path", c_char_p),
        ("gbnf_grammar", c_char_p),
        ("disable_thinking", c_int32),
        ("n_gpu_layers", c_int32),
        ("cache_type_k", c_char_p),
        ("cache_type_v", c_char_p),
        ("context_size", c_int32),
    ]


class Config80(ctypes.Structure):
    """eliza_llm_stream_config_t of ABI 8 to 14, 80 bytes."""

    _fields_ = Config._fields_[:-1]


class VerifierEvent(ctypes.Structure):
    """EliVerifierEvent."""

    _fields_ = [
        ("accepted_token_ids", POINTER(c_int)),
        ("n_accepted", c_size_t),
        ("rejected_from", c_int),
        ("rejected_to", c_int),
        ("corrected_token_ids", POINTER(c_int)),
        ("n_corrected", c_size_t),
    ]


VerifierCallback = CFUNCTYPE(None, POINTER(VerifierEvent), c_void_p)
TtsCallback = CFUNCTYPE(c_int, POINTER(c_float), c_size_t, c_int, c_void_p)

# Strings that the caller must free are pointers here: c_char_p as a result type would lose the address. Input buffers
# are c_char_p (bytes), output buffers c_void_p or pointers to their element.
HANDLE = c_void_p
ERROR = POINTER(c_void_p)
_STRING_OUT = POINTER(c_void_p)
_FLOATS = POINTER(c_float)
_INTS = POINTER(c_int)
_INT32S = POINTER(c_int32)
_SIZE = POINTER(c_size_t)

_TEXT_IN = (c_char_p, c_size_t)
_TEXT_OUT = (c_void_p, c_size_t)
_PCM_IN = (_FLOATS, c_size_t, c_int)
_PCM_OUT = (_FLOATS, c_size_t)

# {name without the prefix: (result, *arguments)}
SIGNATURES: dict[str, tuple] = {
    "abi_version": (c_char_p,),
    "create": (HANDLE, c_char_p, ERROR),
    "destroy": (None, HANDLE),
    "free_string": (None, c_void_p),
    "free_tokens": (None, c_void_p),
    "mmap_acquire": (c_int, HANDLE, c_char_p, ERROR),
    "mmap_evict": (c_int, HANDLE, c_char_p, ERROR),
    "llm_stream_supported": (c_int,),
    "llm_mtp_supported": (c_int,),
    "llm_kv_quant_supported": (c_int,),
    "llm_stream_open": (HANDLE, HANDLE, c_void_p, ERROR),
    "llm_stream_prefill": (c_int, HANDLE, _INT32S, c_size_t, ERROR),
    "llm_stream_next": (c_int, HANDLE, _INT32S, c_size_t, _SIZE, *_TEXT_OUT, _INT32S, _INT32S, ERROR),
    "llm_stream_cancel": (c_int, HANDLE),
    "llm_stream_save_slot": (c_int, HANDLE, c_char_p, ERROR),
    "llm_stream_restore_slot": (c_int, HANDLE, c_char_p, ERROR),
    "llm_stream_reset": (c_int, HANDLE),
    "llm_stream_reset_keep": (c_int, HANDLE, c_int32),
    "llm_stream_close": (None, HANDLE),
    "tokenize_supported": (c_int,),
    "tokenize": (c_int, HANDLE, *_TEXT_IN, c_int, c_int, POINTER(_INTS), _SIZE, ERROR),
    "detokenize": (c_int, HANDLE, _INTS, c_size_t, c_int, c_int, *_TEXT_OUT, ERROR),
    "embed_supported": (c_int,),
    "embed": (c_int, HANDLE, *_TEXT_IN, c_int, _FLOATS, c_size_t, _INTS, ERROR),
    "llm_eot_supported": (c_int,),
    "llm_eot_score": (c_int, HANDLE, _INT32S, c_size_t, c_int32, _FLOATS, _INT32S, _FLOATS, ERROR),
    "set_verifier_callback": (c_int, HANDLE, VerifierCallback, c_void_p, ERROR),
    "tts_synthesize": (c_int, HANDLE, *_TEXT_IN, c_char_p, *_PCM_OUT, ERROR),
    "tts_stream_supported": (c_int,),
    "tts_synthesize_stream": (c_int, HANDLE, *_TEXT_IN, c_char_p, TtsCallback, c_void_p, ERROR),
    "cancel_tts": (c_int, HANDLE, ERROR),
    "encode_reference": (c_int, HANDLE, *_PCM_IN, _INTS, _INTS, POINTER(_INTS), ERROR),
    "asr_transcribe": (c_int, HANDLE, *_PCM_IN, *_TEXT_OUT, ERROR),
    "asr_timestamps_supported": (c_int,),
    "asr_transcribe_timed": (c_int, HANDLE, *_PCM_IN, *_TEXT_OUT, _INTS, _INTS, _SIZE, ERROR),
    "asr_stream_supported": (c_int,),
    "asr_stream_open": (HANDLE, HANDLE, c_int, ERROR),
    "asr_stream_feed": (c_int, HANDLE, _FLOATS, c_size_t, ERROR),
    "asr_stream_partial": (c_int, HANDLE, *_TEXT_OUT, _INTS, _SIZE, ERROR),
    "asr_stream_finish": (c_int, HANDLE, *_TEXT_OUT, _INTS, _SIZE, ERROR),
    "asr_stream_close": (None, HANDLE),
    "vad_supported": (c_int,),
    "vad_open": (HANDLE, HANDLE, c_int, ERROR),
    "vad_process": (c_int, HANDLE, _FLOATS, c_size_t, _FLOATS, ERROR),
    "vad_reset": (c_int, HANDLE, ERROR),
    "vad_close": (None, HANDLE),
    "wakeword_supported": (c_int,),
    "wakeword_open": (HANDLE, HANDLE, c_int, c_char_p, ERROR),
    "wakeword_score": (c_int, HANDLE, _FLOATS, c_size_t, _FLOATS, ERROR),
    "wakeword_reset": (c_int, HANDLE, ERROR),
    "wakeword_close": (None, HANDLE),
    "speaker_supported": (c_int,),
    "speaker_open": (HANDLE, HANDLE, c_char_p, ERROR),
    "speaker_embed": (c_int, HANDLE, _FLOATS, c_size_t, _FLOATS, ERROR),
    "speaker_free": (None, c_void_p),
    "speaker_close": (None, HANDLE),
    "diariz_supported": (c_int,),
    "diariz_open": (HANDLE, HANDLE, c_char_p, ERROR),
    "diariz_segment": (c_int, HANDLE, _FLOATS, c_size_t, POINTER(c_int8), _SIZE, ERROR),
    "diariz_close": (None, HANDLE),
    "kokoro_supported": (c_int,),
    "kokoro_load": (c_int, HANDLE, c_char_p, c_char_p, c_int, ERROR),
    "kokoro_synthesize": (c_int, HANDLE, *_TEXT_IN, c_float, *_PCM_OUT, ERROR),
    "kokoro_sample_rate": (c_int, HANDLE),
    "vision_supported": (c_int,),
    "describe_image": (c_int, HANDLE, c_char_p, c_size_t, c_char_p, c_char_p, *_TEXT_OUT, ERROR),
    # ABI 13
    "vision_stream_supported": (c_int,),
    "describe_image_stream_open": (HANDLE, HANDLE, c_char_p, c_size_t, c_char_p, c_char_p, ERROR),
    # ABI 14
    "kokoro_g2p_kind": (c_int, HANDLE),
    "kokoro_synthesize_ipa": (c_int, HANDLE, *_TEXT_IN, c_float, *_PCM_OUT, ERROR),
    # This project's own
    "llm_backend_report": (c_int, HANDLE, _STRING_OUT, ERROR),
    "llm_stream_stats": (c_int, HANDLE, _STRING_OUT, ERROR),
    "llm_stream_set_seed": (c_int, HANDLE, c_uint64),
    "model_meta": (c_int, HANDLE, c_char_p, _STRING_OUT, ERROR),
    "json_schema_to_gbnf": (c_int, c_char_p, _STRING_OUT, ERROR),
    "last_status": (c_int,),
}

# What a library that says "12" does not export.
NEWER_THAN_12 = {"vision_stream_supported", "describe_image_stream_open", "kokoro_g2p_kind", "kokoro_synthesize_ipa"}


class Error(Exception):
    """A call failed: its ELIZA_ERR_* (that of last_status where the function returned NULL), and its message."""

    def __init__(self, status: int, message: str | None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Library:
    """A loaded library; its functions are attributes, named without the prefix."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._dll = ctypes.CDLL(os.fspath(path))
        for name, (result, *arguments) in SIGNATURES.items():
            try:
                function = getattr(self._dll, PREFIX + name)
            except AttributeError:
                if name in NEWER_THAN_12:
                    continue  # tests that need it fail by its name
                raise
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)

    def take_string(self, pointer: c_void_p) -> str | None:
        """The string behind an output pointer, freed."""
        if not pointer.value:
            return None
        data = ctypes.string_at(pointer.value)
        self.free_string(pointer)
        return data.decode()  # strict: everything the library says is UTF-8

    def call(self, name: str, *arguments):
        """Calls a function that has an `out_error`, which is left out of `arguments`.

        Returns:
          What the function returned.

        Raises:
          Error: it returned a negative status, or NULL instead of a handle.
        """
        error = c_void_p()
        value = getattr(self, name)(*arguments, byref(error))
        status = self.last_status()
        message = self.take_string(error)
        if SIGNATURES[name][0] is HANDLE:
            assert (status < 0) == (value is None), f"{name} returned {value}, and last_status is {status}"
        else:
            assert status == min(value, 0), f"{name} returned {value}, and last_status is {status}"
        if status < 0:
            raise Error(status, message)
        assert message is None, f"{name} succeeded with the error {message!r}"
        return value

    def call_for_string(self, name: str, *arguments) -> str:
        """The same for a function whose last argument but one is a `char**` for its result."""
        result = c_void_p()
        self.call(name, *arguments, byref(result))
        text = self.take_string(result)
        assert text is not None, f"{name} succeeded without a result"
        return text


def library_path() -> Path:
    """$ELIZA_INFERENCE_LIBRARY (absolute, or as $(rlocationpath) gives it), else //:elizainference, named in `data`."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return runfile(os.environ.get("ELIZA_INFERENCE_LIBRARY") or f"libelizainference.{suffix}")


@functools.cache
def load() -> Library:
    """The library at `library_path()`."""
    return Library(library_path())


def live(library: Library | None = None) -> dict[str, int]:
    """The "contexts", "streams" and "models" that this process has, but for the context that asks."""
    with tempfile.TemporaryDirectory() as bundle, Context(bundle, library) as context:
        counts = context.report()["live"]
    return counts | {"contexts": counts["contexts"] - 1}


NOTHING_LIVE = {"contexts": 0, "streams": 0, "models": 0}


def config(**fields) -> Config:
    """A Config with the defaults of ELIZA_LLM_STREAM_CONFIG_DEFAULT; strings as str."""
    values = {"top_p": 1.0, "repeat_penalty": 1.0, "slot_id": -1} | fields
    return Config(**{name: value.encode() if isinstance(value, str) else value for name, value in values.items()})


@dataclass(frozen=True)
class Step:
    """What one `next` gave. `ended`: it returned 1."""

    ended: bool
    tokens: list[int]
    text: str
    drafted: int
    accepted: int


class Stream:
    """An EliLlmStream."""

    def __init__(self, library: Library, handle: int) -> None:
        self.library = library
        self.handle = handle

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def prefill(self, tokens: Sequence[int]) -> None:
        """llm_stream_prefill."""
        assert self.library.call("llm_stream_prefill", self.handle, (c_int32 * len(tokens))(*tokens), len(tokens)) == 0

    def next(self, tokens_cap: int = 32, text_cap: int = 1024) -> Step:
        """llm_stream_next; also checks that it kept to both caps."""
        tokens, count = (c_int32 * max(tokens_cap, 1))(), c_size_t(99)
        # Not NUL: a terminator that the library forgets must be missed.
        text = ctypes.create_string_buffer(b"\x7f" * max(text_cap, 1), max(text_cap, 1) + 1)
        drafted, accepted = c_int32(-1), c_int32(-1)
        status = self.library.call(
            "llm_stream_next",
            self.handle,
            tokens,
            tokens_cap,
            byref(count),
            ctypes.addressof(text),
            text_cap,
            byref(drafted),
            byref(accepted),
        )
        assert status in (0, 1)
        assert count.value <= tokens_cap
        assert b"\0" in text.raw[:text_cap], "no NUL within text_cap"
        return Step(status == 1, list(tokens[: count.value]), text.value.decode(), drafted.value, accepted.value)

    def steps(self, tokens_cap: int = 32, text_cap: int = 1024) -> list[Step]:
        """Calls `next` until the generation ends."""
        steps = [self.next(tokens_cap, text_cap)]
        while not steps[-1].ended:
            steps.append(self.next(tokens_cap, text_cap))
        return steps

    def generate(self, tokens_cap: int = 32, text_cap: int = 1024) -> str:
        """The text of the whole generation."""
        return "".join(step.text for step in self.steps(tokens_cap, text_cap))

    def cancel(self) -> int:
        """llm_stream_cancel."""
        return self.library.llm_stream_cancel(self.handle)

    def reset(self) -> None:
        """llm_stream_reset."""
        assert self.library.llm_stream_reset(self.handle) == OK

    def reset_keep(self, count: int) -> int:
        """llm_stream_reset_keep."""
        return self.library.llm_stream_reset_keep(self.handle, count)

    def stats(self) -> dict:
        """llm_stream_stats, as docs/abi.md has it."""
        return json.loads(self.library.call_for_string("llm_stream_stats", self.handle))

    def close(self) -> None:
        """llm_stream_close; once more does nothing."""
        handle, self.handle = self.handle, None
        self.library.llm_stream_close(handle)


class Context:
    """An EliInferenceContext."""

    def __init__(self, bundle: str | Path, library: Library | None = None) -> None:
        self.library = library or load()
        self.handle = self.library.call("create", os.fsencode(bundle))

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def open(self, **fields) -> Stream:
        """llm_stream_open, with the fields of `config`."""
        return Stream(self.library, self.library.call("llm_stream_open", self.handle, byref(config(**fields))))

    def tokenize(self, text: str | bytes, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """tokenize."""
        data = text.encode() if isinstance(text, str) else text
        tokens, count = POINTER(c_int)(), c_size_t()
        self.library.call(
            "tokenize", self.handle, data, len(data), add_special, parse_special, byref(tokens), byref(count)
        )
        result = tokens[: count.value]
        self.library.free_tokens(ctypes.cast(tokens, c_void_p))
        return result

    def detokenize(self, tokens: Sequence[int], remove_special: bool = False, unparse_special: bool = False) -> str:
        """detokenize."""
        ids, text = (c_int * len(tokens))(*tokens), ctypes.create_string_buffer(65536)
        size = self.library.call(
            "detokenize", self.handle, ids, len(tokens), remove_special, unparse_special, text, len(text)
        )
        return text.raw[:size].decode()

    def report(self) -> dict:
        """llm_backend_report, as docs/backends.md has it."""
        return json.loads(self.library.call_for_string("llm_backend_report", self.handle))

    def close(self) -> None:
        """destroy; once more does nothing."""
        handle, self.handle = self.handle, None
        self.library.destroy(handle)
