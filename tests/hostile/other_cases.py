"""Malformed manifests and slot files by class, the same ones on every run: {class: {name: bytes}}."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable

# -- Manifests ------------------------------------------------------------------------------------


def _manifest(*, path="text/model.gguf", **changes) -> bytes:
    entry = {"path": path, "sha256": "0" * 64} | changes
    return json.dumps({"files": {"text": [entry]}}).encode()


def no_json() -> dict[str, bytes]:
    """What no parser takes, or should."""
    good = _manifest()
    cases = {f"cut off after {size}": good[:size] for size in range(0, len(good), 9)}
    return cases | {
        "a byte order mark of UTF-16": "{}".encode("utf-16"),
        "bytes that are not UTF-8": good.replace(b"model", b"mod\xff\xfe"),
        "half a character": good.replace(b"model", b"mod\xe2\x82"),
        "half a surrogate": good.replace(b"model", b"\\ud800"),
        "a NUL": good + b"\0",
        "NULs": bytes(4096),
        "two documents": good + good,
        "comments": b"// hello\n" + good,
        "a trailing comma": good.replace(b"]", b",]"),
        "NaN": b'{"files": NaN}',
        "a huge number": b'{"files": 1e999999}',
        "100,000 levels of arrays": b"[" * 100_000,
        "100,000 levels of objects": b'{"a":' * 100_000,
        "100 levels where files are": b'{"files": ' + b"[" * 100 + b"]" * 100 + b"}",
        "a key twice": b'{"files": {}, "files": {"text": []}}',
        "20 MB": b'{"id": "' + b"x" * 20_000_000 + b'", "files": {}}',
        "20 MB of blanks": b" " * 20_000_000 + good,
        "a long key twice": b'{"' + b"k" * 100_000 + b'": 1, "' + b"k" * 100_000 + b'": 2}',
        "a key for a terminal twice": b'{"\\u001b[2J": 1, "\\u001b[2J": 2}',
        "a million objects": b'{"files": {"text": [' + b"{}," * 1_000_000 + b"{}]}}",
        "a million elements": b'{"files": {"text": [' + b"1," * 1_000_000 + b"1]}}",
    }


def outside_paths() -> dict[str, bytes]:
    """Paths that lead out of the bundle, or nowhere."""
    paths = [
        "../secret.gguf",
        "text/../../secret.gguf",
        "/etc/passwd",
        "//etc/passwd",
        "text//model.gguf",
        "./text/model.gguf",
        "text/./model.gguf",
        "text/",
        "/",
        ".",
        "..",
        "",
        "text\\model.gguf",
        "..\\secret.gguf",
        "C:\\model.gguf",
        "text/model\n.gguf",
        "text/model\x00.gguf",
        "\x1b[2J",
        "text/missing.gguf",
        "text",
        "a/" * 3000 + "model.gguf",
        "x" * 100_000,
    ]
    return {f"path {path[:30]!r}": _manifest(path=path) for path in paths}


def wrong_values() -> dict[str, bytes]:
    """Values of another type or range than the field's."""
    others = {"null": None, "a number": 1, "a boolean": True, "a text": "x", "a list": [1], "an object": {"a": 1}}
    cases = {}
    for name, value in others.items():
        cases[f"the document is {name}"] = json.dumps(value).encode()
        if name != "an object":
            cases[f"files is {name}"] = json.dumps({"files": value}).encode()
        if name != "a list":
            cases[f"text is {name}"] = json.dumps({"files": {"text": value}}).encode()
        cases[f"an entry is {name}"] = json.dumps({"files": {"text": [value]}}).encode()
        if name != "a text":
            cases[f"path is {name}"] = _manifest(path=value)
            cases[f"id is {name}"] = json.dumps({"id": value, "files": {}}).encode()
        cases[f"sha256 is {name}"] = _manifest(sha256=value)
        cases[f"runtimeClass is {name}"] = _manifest(runtimeClass=value)
        if name != "a number":
            cases[f"ctx is {name}"] = _manifest(ctx=value)
    for number in (0, -1, 1.5, 2**31, 2**63, 2**64, 1e300):
        cases[f"ctx is {number}"] = _manifest(ctx=number)
    for digest in ("", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 100_000):
        cases[f"sha256 is {digest[:3]!r} and so on, {len(digest)}"] = _manifest(sha256=digest)
    for name in ("", "LLAMA-CPP", "llama-cpp ", "cuda", "\x1b[2J", "x" * 100_000):
        cases[f"runtimeClass is {name[:12]!r}"] = _manifest(runtimeClass=name)
    return cases


MANIFEST_CLASSES: dict[str, Callable[[], dict[str, bytes]]] = {
    "no JSON": no_json,
    "outside paths": outside_paths,
    "wrong values": wrong_values,
}

# -- Slot files -----------------------------------------------------------------------------------

# slot-file.cc: magic, format, header size, checksum, model, runtime, KV types, tokens, decoded, visible, state size.
_SLOT = struct.Struct("<8sIIQQQIIQQQQ")
_CHECKSUM, _TOKENS, _DECODED, _VISIBLE, _STATE = 3, 8, 9, 10, 11


def _hash(value: int, data: bytes) -> int:
    mask = 2**64 - 1
    for at in range(0, len(data), 8):
        value = (value ^ int.from_bytes(data[at : at + 8], "little")) * 0x100000001B3 & mask
        value ^= value >> 29
    return value


def _forged(fields: list, tokens: bytes, state: bytes) -> bytes:
    """A slot with a checksum that fits: what somebody writes who has read the source."""
    fields[_CHECKSUM] = 0
    value = _hash(0xCBF29CE484222325, _SLOT.pack(*fields))
    fields[_CHECKSUM] = _hash(_hash(value, tokens), state)
    return _SLOT.pack(*fields) + tokens + state


def _parts(good: bytes) -> tuple[list, bytes, bytes]:
    fields = list(_SLOT.unpack_from(good))
    end = _SLOT.size + 4 * fields[_TOKENS]
    return fields, good[_SLOT.size : end], good[end:]


def damaged_slots(good: bytes) -> dict[str, bytes]:
    """Truncated, altered and foreign files."""
    cases = {f"cut off after {size}": good[:size] for size in [*range(0, 89, 4), len(good) // 2, len(good) - 1]}
    for at in [*range(0, 80, 3), *range(80, len(good), max(1, len(good) // 40))]:
        cases[f"byte {at} is another"] = good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :]
    for name, at in {"tokens": 48, "decoded": 56, "visible": 64, "state": 72}.items():
        for edge in (2**31, 2**32, 2**62, 2**63, 2**64 - 1):
            cases[f"{edge} {name}"] = good[:at] + struct.pack("<Q", edge) + good[at + 8 :]
    return cases | {"a byte too many": good + b"\0", "a megabyte too many": good + bytes(2**20), "zeros": bytes(4096)}


def forged_slots(good: bytes) -> dict[str, bytes]:
    """Files whose checksum fits what else is wrong with them."""
    cases = {}
    fields, tokens, state = _parts(good)

    def add(name: str, tokens: bytes, state: bytes, **changes: int) -> None:
        forged = list(fields)
        forged[_TOKENS], forged[_STATE] = len(tokens) // 4, len(state)
        for index, value in changes.items():
            forged[int(index[1:])] = value
        cases[name] = _forged(forged, tokens, state)

    for token in (-1, -(2**31), 2**31 - 1, 362, 100_000):
        bad = struct.pack("<i", token)
        add(f"token {token} first", bad + tokens[4:], state)
        add(f"token {token} last", tokens[:-4] + bad, state)
        add(f"token {token} everywhere", bad * (len(tokens) // 4), state)
    add("more tokens than the state has", tokens * 2, state)
    add("fewer tokens than the state has", tokens[:4], state, _9=1, _10=1)
    add("no tokens", b"", state, _9=0, _10=0)
    add("a million tokens", tokens[:4] * 1_000_000, state, _9=1_000_000, _10=1_000_000)
    add("no state", tokens, b"")
    for size in [*range(1, 40, 4), len(state) // 3, len(state) // 2, len(state) - 1]:
        add(f"a state of {size} bytes", tokens, state[:size])
    add("a state with more behind it", tokens, state + bytes(100))
    for at in range(0, min(len(state) - 4, 120), 4):
        for edge in (0, 0xFF, 2**31 - 1, 2**32 - 1):
            add(f"a state with {edge} at {at}", tokens, state[:at] + struct.pack("<I", edge) + state[at + 4 :])
    noise = random.Random(9)
    for number in range(20):
        add(f"noise {number}", tokens, noise.randbytes(noise.choice([1, 8, 64, len(state)])))
    return cases
