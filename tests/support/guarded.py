"""Memory that ends where it says: whoever reads one byte further dies of it."""

from __future__ import annotations

import ctypes
import mmap
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def guarded(data: bytes | ctypes.Array | ctypes.Structure) -> int:
    """The address of a copy of `data` whose last byte is the last of a page, before one that must not be touched.

    The memory stays until the process ends: for tests in a process of their own.
    """
    raw = bytes(data)
    page = mmap.PAGESIZE
    size = -(-len(raw) // page) * page
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages = _LIBC.mmap(None, size + page, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if pages == ctypes.c_void_p(-1).value or _LIBC.mprotect(pages + size, page, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    address = pages + size - len(raw)
    ctypes.memmove(address, raw, len(raw))
    return address
