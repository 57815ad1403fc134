"""Malformed files of an MLX model by class, the same ones on every run: {class: {name: bytes}} for each kind of file.

tests/mlx/hostile_test.py checks what the messages say of those that have a message here.
"""

from __future__ import annotations

import copy
import functools
import json
import struct
from collections.abc import Callable, Iterator

from tests.models import make_tiny_mlx

MODEL = "llama_f32"  # of make_tiny_mlx; the bundle tiny_mlx_llama_f32

Classes = dict[str, Callable[[], dict[str, bytes]]]


@functools.cache
def good(name: str) -> bytes:
    """A file of the model, as it should be."""
    return make_tiny_mlx.make(MODEL)[name]


# -- *.safetensors --------------------------------------------------------------------------------


def file(header: object, data: bytes = bytes(16), size: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def tensor(dtype: object = "F32", shape: object = (2, 2), offsets: object = (0, 16)) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


SAFETENSORS_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "has 0 bytes, too few"),
    "a few bytes": (b"abc", "has 3 bytes, too few"),
    "a pointer of Git LFS": (b"version https://git-lfs.github.com/spec/v1\n", "its header claims"),
    "a header beyond the file": (file({}, size=10**6), "its header claims 1000000 bytes"),
    "a header beyond numbers": (file({}, size=2**64 - 1), "its header claims"),
    "a huge header": (file(b" " * (17 << 20)), "too many for one"),
    "no JSON": (file(b"{nonsense}"), "its header is not valid JSON"),
    "a NUL": (file(b"{}\0"), "its header holds a NUL byte"),
    "no object": (file(b"[1, 2]"), "its header is no JSON object"),
    "a deep header": (file(b'{"a":' * 100_000), "is nested deeper"),
    "a tensor that is none": (file({"a": 7}), "the tensor 'a' lacks a dtype"),
    "no offsets": (file({"a": {"dtype": "F32", "shape": [1]}}), "the tensor 'a' lacks a dtype"),
    "unknown type": (file({"a": tensor(dtype="F7")}), "the tensor 'a' has the dtype 'F7'"),
    "negative dimension": (file({"a": tensor(shape=[-2, 2])}), "the tensor 'a' has the dimension -2"),
    "fractional dimension": (file({"a": tensor(shape=[2.5])}), "the tensor 'a' has the dimension 2.5"),
    "huge dimension": (file({"a": tensor(shape=[2**40])}), "the tensor 'a' has the dimension 1099511627776"),
    "overflowing shape": (file({"a": tensor(shape=[2**30] * 8)}), "the tensor 'a' is larger than the file"),
    "many dimensions": (file({"a": tensor(shape=[1] * 9)}), "the tensor 'a' has too many dimensions"),
    "outside": (file({"a": tensor(offsets=[8, 24])}), "the tensor 'a' lies from 8 to 24, outside"),
    "far outside": (file({"a": tensor(offsets=[2**63, 2**63 + 16])}), "outside the file's 16 bytes"),
    "backwards": (file({"a": tensor(offsets=[16, 0])}), "the tensor 'a' lies from 16 to 0"),
    "negative offset": (file({"a": tensor(offsets=[-16, 0])}), "the tensor 'a' has data_offsets"),
    "one offset": (file({"a": tensor(offsets=[0])}), "the tensor 'a' has data_offsets"),
    "another size": (file({"a": tensor(shape=[1])}), "the tensor 'a' has 16 bytes, where its shape needs 4"),
    "overlapping": (
        file({"a": tensor(shape=[2], offsets=[0, 8]), "b": tensor(shape=[2], offsets=[4, 12])}),
        "the tensor 'b' lies over the tensor 'a'",
    ),
    "twice": (
        file(
            b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},'
            b' "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}'
        ),
        "the tensor 'a' is in its header twice",
    ),
    "a tensor of a million numbers": (file({"a": [1] * 10**6}), "has more values than a tensor has"),
    "100,000 tensors": (file({str(i): {} for i in range(10**5)}), "lacks a dtype"),
    "metadata without end": (file({"__metadata__": {str(i): "" for i in range(10**5)}}), "has more values than"),
    "metadata of numbers": (file({"__metadata__": {"format": 1}}), "__metadata__ holds something else"),
    "a name for a terminal": (file({"\x1b[2J\x07\r\n": 7}), r"the tensor '\x1b[2J\x07\x0d\x0a' lacks a dtype"),
    "a name of 100,000 bytes": (file({"x" * 100_000: 7}), "xxx…' lacks a dtype"),
    "metadata of a list": (file({"__metadata__": []}), "__metadata__ is no JSON object"),
}


def _documents() -> dict[str, bytes]:
    return {name: data for name, (data, _) in SAFETENSORS_FILES.items()}


def _header() -> tuple[dict, bytes]:
    """The good file's header, and its data."""
    data = good("model.safetensors")
    (size,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _cut_safetensors() -> dict[str, bytes]:
    """Cut off in its header and in its data; and a header that claims another size than it has."""
    data = good("model.safetensors")
    (size,) = struct.unpack_from("<Q", data)
    cuts = [
        *range(12),
        *range(12, 8 + size, size // 24),
        8 + size,
        9 + size,
        (8 + size + len(data)) // 2,
        len(data) - 1,
    ]
    cases = {f"cut off after {at}": data[:at] for at in cuts}
    for claimed in (0, 1, size - 1, size + 1, len(data), 2**31, 2**32, 2**63, 2**64 - 9, 2**64 - 8, 2**64 - 1):
        cases[f"a header that claims {claimed} bytes"] = struct.pack("<Q", claimed) + data[8:]
    return cases


def _changed_tensors() -> dict[str, bytes]:
    """One tensor that is described otherwise than it is, or not at all."""
    header, data = _header()
    name = next(name for name in header if name != "__metadata__")
    tensor_of = header[name]
    begin, end = tensor_of["data_offsets"]
    cases = {"without the tensor": file({key: value for key, value in header.items() if key != name}, data)}

    def change(what: str, **values: object) -> None:
        cases[what] = file(header | {name: tensor_of | values}, data)

    for shape in (
        [],
        [1],
        [*tensor_of["shape"], 2],
        [2**31 - 1] * 4,
        [2**32, 2**32],
        [2**63, 2],
        [-1],
        [0],
        [1.5],
        ["x"],
    ):
        change(f"shape {shape}", shape=shape)
    for dtype in ("", "f32", "F64", "I8", "BF16", "F4", "x" * 1000, None, 1, ["F32"]):
        change(f"dtype {str(dtype)[:9]}", dtype=dtype)
    for edge in (2**31, 2**32, 2**62, 2**63, 2**64 - 1, 2**64, 10**400):
        change(f"ends at {str(edge)[:24]}", data_offsets=[begin, edge])
        change(f"begins at {str(edge)[:24]}", data_offsets=[edge, end])
    for offsets in ([], [0], [0, 0], [end, begin], [begin, end, end], {}, None, "x", [None, None], [0.0, 4.0]):
        change(f"offsets {offsets}", data_offsets=offsets)
    for what in (None, True, 1, "x", [], {}):
        cases[f"a tensor that is {json.dumps(what)}"] = file(header | {name: what}, data)
    return cases


SAFETENSORS_CLASSES: Classes = {
    "headers": _documents,
    "cut off": _cut_safetensors,
    "changed tensors": _changed_tensors,
}


# -- config.json ----------------------------------------------------------------------------------

# {what: (bytes, what the message says)}
CONFIG_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not valid JSON"),
    "cut short": (b'{"model_type": "llama"', "not valid JSON"),
    "an array": (b"[]", "the document is an array; it must be an object"),
    "deep": (b'{"a":' * 100_000, "is nested deeper"),
    "deep arrays": (b'{"a":' + b"[" * 1_000_000, "is nested deeper"),
    "not UTF-8": (b'{"model_type": "\xff"}', "not valid JSON"),
    "a NUL": (b'{"model_type": "llama"}\0', "not valid JSON: it holds a NUL byte"),
    "a number beyond numbers": (b'{"model_type": 1e999}', "not valid JSON"),
    "a million numbers": (b'{"a": [' + b"1," * 10**6 + b"1]}", "holds more than 200000 values"),
    "50,000 objects": (b'{"a": [' + b"{}," * 50_000 + b"{}]}", "holds more than 8192 objects"),
    "large": (b" " * (17 << 20) + b"{}", "is larger than 16777216 bytes"),
}

_OTHERS = {
    "null": None,
    "a boolean": True,
    "a text": "x",
    "a list": [1],
    "an object": {"a": 1},
    "-1": -1,
    "2**63": 2**63,
}


def _config_documents() -> dict[str, bytes]:
    data = good("config.json")
    return {name: data for name, (data, _) in CONFIG_FILES.items()} | {
        f"cut off after {at}": data[:at] for at in range(0, len(data) - 2, len(data) // 12)
    }


def _config_values() -> dict[str, bytes]:
    """Values of another type or range, of keys that a model cannot do without."""
    config = json.loads(good("config.json"))
    keys = ["model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
    return {
        f"{key} is {name}": json.dumps(config | {key: value}).encode()
        for key in keys
        for name, value in _OTHERS.items()
    }


CONFIG_CLASSES: Classes = {"no config": _config_documents, "wrong values": _config_values}


# -- tokenizer.json -------------------------------------------------------------------------------


def _places(value: object, at: tuple = ()) -> Iterator[tuple]:
    """The keys that lead to each value that is no text; of lists the first two elements, of the vocabulary none."""
    if at and not isinstance(value, str):
        yield at
    children = value.items() if isinstance(value, dict) and at != ("model", "vocab") else []
    children = enumerate(value[:2]) if isinstance(value, list) else children
    for key, child in children:
        yield from _places(child, (*at, key))


def _tokenizer_with(document: dict, place: tuple, value: object) -> bytes:
    changed = copy.deepcopy(document)
    at = changed
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return json.dumps(changed).encode()


def _no_tokenizer() -> dict[str, bytes]:
    data = good("tokenizer.json")
    cases = {f"cut off after {at}": data[:at] for at in range(0, len(data) - 2, len(data) // 24)}
    return cases | {
        "a NUL": data + b"\0",
        "two documents": data + data,
        "not UTF-8": data.replace(b"BPE", b"B\xffE"),
        "a list": b"[]",
        "a number": b"7",
        "100,000 levels": b'{"model":' + b'{"a":' * 100_000,
        "100,000 levels in the merges": b'{"model": {"merges": ' + b"[" * 100_000,
        "a million numbers": b'{"x": [' + b"1," * 10**6 + b"1]}",
        "100,000 objects": b'{"x": [' + b"{}," * 10**5 + b"{}]}",
        "70 MB": b'{"x": "' + b"y" * (70 << 20) + b'"}',
        "a merge of a million tokens": b'{"model": {"merges": [[' + b'"a",' * 10**6 + b'"a"]]}}',
        "a token that is a megabyte": b'{"model": {"vocab": {"' + b"x" * 2**20 + b'": -1}}}',
        "a token for a terminal": b'{"model": {"vocab": {"\\u001b[2J\\u0007": -1}}}',
    }


_UNREAD = {"truncation", "padding", "pair", "type_id", "Sequence", "tokens"}  # keys, with all below them


def _tokenizer_values() -> dict[str, bytes]:
    """A text where there is none, at each place that is read."""
    document = json.loads(good("tokenizer.json"))
    return {
        "/".join(map(str, place)): _tokenizer_with(document, place, "\x1b[2J")
        for place in _places(document)
        if _UNREAD.isdisjoint(place)
    }


def _vocabularies() -> dict[str, bytes]:
    document = json.loads(good("tokenizer.json"))
    values = {
        "no tokens": {},
        "a list": [["a", 0.0]],
        "ids beyond the most": {"a": 2**20},
        "ids beyond numbers": {"a": 2**64},
        "negative ids": {"a": -1},
        "an id twice": {"a": 7, "b": 7},
        "ids in text": {"a": "7"},
        "ids in objects": {"a": {"b": 1}},
    }
    return {what: _tokenizer_with(document, ("model", "vocab"), value) for what, value in values.items()} | {
        f"merges of {json.dumps(merge)}": _tokenizer_with(document, ("model", "merges", 0), merge)
        for merge in (["a"], ["a", "b", "c"], ["a", ["b"]], {"a": "b"}, "a b c", "ab", ["no such", "token"], 7, None)
    }


TOKENIZER_CLASSES: Classes = {
    "no tokenizer": _no_tokenizer,
    "a text anywhere": _tokenizer_values,
    "vocabularies": _vocabularies,
}
