"""LiteRT-LM's C API in ctypes, as far as the tests call it: what the library itself says.

with Runtime(library) as runtime, runtime.engine(model) as engine, engine.session(max_tokens=8) as session:
    session.prefill("hello")
    text = "".join(session.decode())
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_void_p
from pathlib import Path

_CALLBACK = CFUNCTYPE(None, c_void_p, c_void_p)
_SIGNATURES = {
    "get_last_error_message": (c_char_p,),
    "set_min_log_level": (None, c_int),
    "engine_settings_create": (c_void_p, c_char_p, c_char_p, c_char_p, c_char_p),
    "engine_settings_delete": (None, c_void_p),
    "engine_settings_set_cache_dir": (None, c_void_p, c_char_p),
    "engine_settings_set_num_threads": (None, c_void_p, c_int),
    "engine_settings_enable_benchmark": (None, c_void_p),
    "engine_create": (c_void_p, c_void_p),
    "engine_delete": (None, c_void_p),
    "engine_create_session": (c_void_p, c_void_p, c_void_p),
    "sampler_params_create": (c_void_p, c_int),
    "sampler_params_delete": (None, c_void_p),
    "sampler_params_set_top_k": (None, c_void_p, c_int32),
    "sampler_params_set_top_p": (None, c_void_p, c_float),
    "sampler_params_set_temperature": (None, c_void_p, c_float),
    "session_config_create": (c_void_p,),
    "session_config_delete": (None, c_void_p),
    "session_config_set_sampler_params": (None, c_void_p, c_void_p),
    "session_config_set_apply_prompt_template": (None, c_void_p, c_bool),
    "session_config_set_max_output_tokens": (None, c_void_p, c_int),
    "input_data_create": (c_void_p, c_int, c_char_p, c_size_t),
    "input_data_delete": (None, c_void_p),
    "session_run_prefill": (c_int, c_void_p, POINTER(c_void_p), c_size_t),
    "session_run_decode_async": (c_int, c_void_p, _CALLBACK, c_void_p),
    "session_delete": (None, c_void_p),
    "session_get_benchmark_info": (c_void_p, c_void_p),
    "benchmark_info_delete": (None, c_void_p),
    "benchmark_info_get_num_decode_turns": (c_int, c_void_p),
    "benchmark_info_get_decode_token_count_at": (c_int, c_void_p, c_int),
    "stream_chunk_get_text": (c_char_p, c_void_p),
    "stream_chunk_is_final": (c_bool, c_void_p),
    "stream_chunk_get_error": (c_char_p, c_void_p),
}

_TOP_P = 2


class Session:
    """A greedy session."""

    def __init__(self, runtime: Runtime, handle: int) -> None:
        self._runtime = runtime
        self._handle = handle

    def prefill(self, text: str) -> None:
        """Appends a text to the context."""
        data = text.encode()
        with self._runtime.owned("input_data", self._runtime.input_data_create(0, data, len(data))) as item:
            assert self._runtime.session_run_prefill(self._handle, (c_void_p * 1)(item), 1) == 0

    def decode(self) -> list[str]:
        """The chunks of a generation."""
        chunks, error, ended = [], [], threading.Event()

        def on_chunk(_, chunk):
            text = self._runtime.stream_chunk_get_text(chunk)
            if text is not None:
                chunks.append(text.decode())
            if self._runtime.stream_chunk_is_final(chunk):
                error.append(self._runtime.stream_chunk_get_error(chunk))
                ended.set()

        callback = _CALLBACK(on_chunk)
        assert self._runtime.session_run_decode_async(self._handle, callback, None) == 0
        assert ended.wait(240)
        assert error[0] in (None, b"Max number of tokens reached.")
        return chunks

    def decoded_tokens(self) -> int:
        """How many tokens the last generation was; the engine needs `benchmark`."""
        info = self._runtime.session_get_benchmark_info(self._handle)
        turns = self._runtime.benchmark_info_get_num_decode_turns(info)
        count = self._runtime.benchmark_info_get_decode_token_count_at(info, turns - 1)
        self._runtime.benchmark_info_delete(info)
        return count


class Engine:
    """A loaded model."""

    def __init__(self, runtime: Runtime, handle: int) -> None:
        self._runtime = runtime
        self._handle = handle

    @contextmanager
    def session(self, max_tokens: int = 0) -> Iterator[Session]:
        """A session of greedy generations of at most `max_tokens` (0: no bound)."""
        runtime = self._runtime
        with (
            runtime.owned("session_config", runtime.session_config_create()) as config,
            runtime.owned("sampler_params", runtime.sampler_params_create(_TOP_P)) as sampler,
        ):
            runtime.sampler_params_set_top_k(sampler, 1)
            runtime.sampler_params_set_top_p(sampler, 1.0)
            runtime.sampler_params_set_temperature(sampler, 1.0)
            runtime.session_config_set_sampler_params(config, sampler)
            runtime.session_config_set_apply_prompt_template(config, False)
            if max_tokens:
                runtime.session_config_set_max_output_tokens(config, max_tokens)
            handle = runtime.engine_create_session(self._handle, config)
        with runtime.owned("session", handle):
            yield Session(runtime, handle)


class Runtime:
    """The library; its functions are attributes, without their prefix."""

    def __init__(self, path: str | Path) -> None:
        library = ctypes.CDLL(os.fspath(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(library, f"litert_lm_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.set_min_log_level(1000)

    @contextmanager
    def owned(self, kind: str, handle: int | None) -> Iterator[int]:
        """Deletes an object of the library at the end."""
        assert handle, (kind, self.get_last_error_message())
        try:
            yield handle
        finally:
            getattr(self, f"{kind}_delete")(handle)

    @contextmanager
    def engine(self, model: Path, threads: int = 1, benchmark: bool = False) -> Iterator[Engine]:
        """The model on the CPU."""
        with self.owned(
            "engine_settings", self.engine_settings_create(os.fsencode(model), b"cpu", None, None)
        ) as settings:
            self.engine_settings_set_cache_dir(settings, b":nocache")
            self.engine_settings_set_num_threads(settings, threads)
            if benchmark:
                self.engine_settings_enable_benchmark(settings)
            handle = self.engine_create(settings)
        with self.owned("engine", handle):
            yield Engine(self, handle)
