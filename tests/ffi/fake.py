"""The library with the fake backend (fake-backend.h), scripted from Python.

    fake = Fake()
    fake.script(next=lambda session, *arguments: -4)

A hook gets the arguments of the C function it stands for, pointers as addresses (None for NULL), and returns what the C
function shall return.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint64, c_void_p

from tests.support import abi
from tests.support.runfile import runfile

# {hook: (result, *arguments)}, in the order of FakeHooks.
_HOOKS = {
    "can_serve": (c_int, c_void_p),
    "open": (c_int, c_void_p, c_void_p, c_void_p),
    "prefill": (c_int, c_int, c_void_p, c_size_t, c_void_p),
    "next": (c_int, c_int, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p),
    "cancel": (c_int, c_int),
    "reset": (c_int, c_int),
    "reset_keep": (c_int, c_int, c_int32),
    "save_slot": (c_int, c_int, c_void_p, c_void_p),
    "restore_slot": (c_int, c_int, c_void_p, c_void_p),
    "set_seed": (c_int, c_int, c_uint64),
    "has_concurrent_stats": (c_int, c_int),
    "deleted": (None, c_int),
}
_TYPES = {name: CFUNCTYPE(*signature) for name, signature in _HOOKS.items()}

# FakeThrow
THROW_ERROR, THROW_BAD_ALLOC, THROW_STD_EXCEPTION, THROW_INT = 1, 2, 3, 4


class _Hooks(ctypes.Structure):
    _fields_ = list(_TYPES.items())


class Fake:
    """The library, with the fake registered; `library` is the whole of its ABI."""

    def __init__(self) -> None:
        suffix = "dylib" if sys.platform == "darwin" else "so"
        self.library = abi.Library(runfile(f"tests/ffi/libelizainference.{suffix}"))
        self._dll = ctypes.CDLL(str(self.library.path))
        self._libc = ctypes.CDLL(None)
        self._libc.strdup.restype = c_void_p
        self._dll.eliza_test_fake_backend.argtypes = [POINTER(_Hooks)]
        self._dll.eliza_test_set_error.argtypes = [c_void_p, c_int, c_char_p]
        self.script()

    def script(self, **hooks: Callable) -> None:
        """Sets these hooks, and no others."""
        self._hooks = _Hooks(**{name: _TYPES[name](hook) for name, hook in hooks.items()})
        self._dll.eliza_test_fake_backend(self._hooks)

    def throw(self, what: int) -> None:
        """In a hook: the C++ function throws when the hook has returned."""
        self._dll.eliza_test_throw(what)

    def set_error(self, out_error: int | None, message: bytes) -> None:
        """In a hook: leaves a malloc'ed message in a `char** out_error`."""
        if out_error:
            c_void_p.from_address(out_error).value = self._libc.strdup(message)

    def set_error_and_status(self, out_error: int | None, status: int, message: bytes) -> None:
        """The same, as the library's own backends do it: the status is kept for a function that returns none."""
        self._dll.eliza_test_set_error(out_error, status, message)

    def pause(self, on: bool) -> None:
        """Whether each open, prefill and next waits, in C++, before it does anything."""
        self._dll.eliza_test_pause(on)

    def paused(self) -> int:
        """How many of them wait."""
        return self._dll.eliza_test_paused()

    def live_sessions(self) -> int:
        """How many sessions exist."""
        return self._dll.eliza_test_live_sessions()

    def raw(self, name: str) -> Callable:
        """A function of the ABI, with all its pointers as addresses."""
        result, *kinds = abi.SIGNATURES[name]
        plain = (c_int, c_int32, c_size_t, c_uint64)
        function = self._dll[abi.PREFIX + name]  # a new object: its types are not those of `library`
        function.restype = result
        function.argtypes = [kind if kind in plain else c_void_p for kind in kinds]
        return function
