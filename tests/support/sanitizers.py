"""Which sanitizer a test runs under: --config=asan or --config=tsan, whose runtime pytest_main.py preloads."""

import os

_preloaded = os.environ.get("LD_PRELOAD", "")

ASAN = "libasan" in _preloaded
TSAN = "libtsan" in _preloaded
