"""The library reads the config of its ABI, 88 bytes or 80, and not one byte more."""

import ctypes
import mmap
import os

from tests.support import abi, models
from tests.support.isolated import isolated

CYCLE = "tiny_llama_cycle"


def _at_the_end_of_memory(config: ctypes.Structure) -> int:
    """A copy of `config` whose last byte is the last of a page, before one that must not be touched; its address."""
    page = mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = libc.mmap(None, 2 * page, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert libc.mprotect(pages + page, page, 0) == 0, os.strerror(ctypes.get_errno())
    address = pages + page - ctypes.sizeof(config)
    ctypes.memmove(address, ctypes.byref(config), ctypes.sizeof(config))
    return address


def _generate(config_type: type[ctypes.Structure]) -> str:
    library = abi.load()
    config = config_type(max_tokens=12, top_p=1.0, repeat_penalty=1.0, slot_id=-1)
    with abi.Context(models.bundle(CYCLE)) as context:
        handle = library.call("llm_stream_open", context.handle, _at_the_end_of_memory(config))
        with abi.Stream(library, handle) as stream:
            stream.prefill(context.tokenize("abc"))
            return stream.generate()


@isolated
def test_reads_its_config_and_nothing_behind_it():
    config_type = {b"12": abi.Config80, b"15": abi.Config}[abi.load().abi_version()]
    assert _generate(config_type) == models.alphabet("abc", 12)
