"""Tiny models of every architecture that llama.cpp has, each changed in one place, through the C ABI.

    architectures [--share=N/OF] [--models=REGEX] [--cases=REGEX]

makes the models, tries every OFth change beginning with the Nth, and prints a line of JSON for each model: how many
were used, how many refused, and of the others what became of them. The exit code is 1 where there were others.

The models come of llama.cpp's own test of its architectures: weights at random, and every key that an architecture
may have.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.hostile import runner
from tests.hostile.gguf_file import TYPES, GgufFile, Pair, Tensor
from tests.hostile.messages import readable
from tests.models.gguf_writer import ARRAY, BOOL, F32, I32, U32
from tests.support import abi
from tests.support.runfile import runfile

Change = Callable[[GgufFile], GgufFile]

# What llama.cpp has and does not generate text with, token by token.
NO_DECODERS = {"dream", "llada", "llada-moe", "rnd1"}
_MOST_BYTES = 1 << 24  # of a tensor that is made larger


def make(folder: Path, architectures: str) -> list[Path]:
    """Saves the models whose architectures match, and returns their files: ARCHITECTURE-dense.gguf or -moe.gguf."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [runfile(os.environ["MAKE_MODELS"]), "-s", "1", "-a", architectures, "-o", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("*.gguf"))


def architecture(model: Path) -> str:
    """Of a file that `make` named."""
    return model.stem.removesuffix("-dense").removesuffix("-moe")


def use(folder: Path, file: GgufFile, changes: dict[str, Change], name: str) -> list[str]:
    """Everything that computes, in a bundle below `folder`. The message, where the model is refused."""
    (folder / "text").mkdir(parents=True, exist_ok=True)
    changes[name](file).write(folder / "text" / "model.gguf")
    try:
        with abi.Context(folder) as context, context.open(max_tokens=4, context_size=128) as stream:
            stream.prefill([3, 4, 5, 6, 7])
            stream.generate()
            stream.prefill(list(range(3, 40)))
            stream.generate()
    except abi.Error as error:
        return [readable(error.message)]
    return []


def unchanged(file: GgufFile) -> GgufFile:
    """The file."""
    return file


def changes(file: GgufFile) -> dict[str, Change]:
    """Every change of one thing, by what it is. Of the tensors of all layers it takes those of the first."""
    found: dict[str, Change] = {}
    roles = set()
    for i, tensor in enumerate(file.tensors):
        role = re.sub(r"blk\.\d+\.", "blk.", tensor.name)
        if role not in roles:
            roles.add(role)
            found |= {f"{tensor.name} {what}": _with_tensor(i, other) for what, other in _tensors(tensor)}
    for i, pair in enumerate(file.pairs):
        if not pair.key.startswith(("tokenizer.", "general.")):
            found |= {f"{pair.key} {what}": _with_pair(i, other) for what, other in _pairs(pair)}
    return found


def _with_tensor(index: int, tensor: Tensor | None) -> Change:
    def change(file: GgufFile) -> GgufFile:
        return GgufFile(file.pairs, _replaced(file.tensors, index, tensor))

    return change


def _with_pair(index: int, pair: Pair | None) -> Change:
    def change(file: GgufFile) -> GgufFile:
        return GgufFile(_replaced(file.pairs, index, pair), file.tensors)

    return change


def _replaced(items: list, index: int, item) -> list:
    return items[:index] + ([] if item is None else [item]) + items[index + 1 :]


def _tensors(tensor: Tensor) -> Iterator[tuple[str, Tensor | None]]:
    yield "left out", None
    shape = tensor.extents
    for type, (_, elements, _) in TYPES.items():
        if type != tensor.type and shape[0] % elements == 0:
            yield f"as {type}", tensor.changed(type=type)
    for d, extent in enumerate(shape):
        for other in sorted({1, extent // 2, extent * 2, extent + 32} - {0, extent}):
            if len(tensor.data) // extent * other < _MOST_BYTES:
                extents = shape[:d] + (other,) + shape[d + 1 :]
                yield f"{list(shape)} -> {list(extents)}", tensor.changed(extents)
    if len(shape) > 1:
        yield "turned", tensor.changed(shape[::-1])


def _pairs(pair: Pair) -> Iterator[tuple[str, Pair | None]]:
    yield "left out", None
    if pair.kind in (U32, I32):
        (number,) = struct.unpack("<I", pair.value)
        for other in _others(number):
            yield f"{number} -> {other}", pair._replace(value=struct.pack("<I", other))
    elif pair.kind == F32:
        for number in (0.0, -1.0, 1e38, 1e-45):
            yield f"-> {number}", pair._replace(value=struct.pack("<f", number))
    elif pair.kind == BOOL:
        yield "the other way round", pair._replace(value=bytes([1 - pair.value[0]]))
    elif pair.kind == ARRAY:
        yield from _arrays(pair)


def _arrays(pair: Pair) -> Iterator[tuple[str, Pair]]:
    kind, count = struct.unpack_from("<IQ", pair.value)
    if kind not in (U32, I32) or not 0 < count < 64:
        return
    numbers = list(struct.unpack_from(f"<{count}I", pair.value, 12))

    def array(numbers: list[int]) -> Pair:
        return pair._replace(value=struct.pack(f"<IQ{len(numbers)}I", kind, len(numbers), *numbers))

    yield f"of {count} zeros", array([0] * count)
    for size in (0, 1, count + 1):
        yield f"of {size}", array((numbers * 2)[:size])
    for i in {0, count - 1}:
        for other in _others(numbers[i]):
            yield f"{numbers} with {other} as its element {i}", array(numbers[:i] + [other] + numbers[i + 1 :])


def _others(number: int) -> list[int]:
    near = {number - 1, number + 1, number // 2, number * 2, number * 4}
    far = {0, 1, 2, 3, 7, 64, 1000, 65536, 2**31 - 1, 2**32 - 1}
    return sorted(other for other in (near | far) - {number} if 0 <= other < 2**32)


def attack(model: Path, folder: Path, share: int, of: int, cases: str) -> dict:
    """Tries the changes of a model; the line that says what became of them."""
    file = GgufFile.read(model)
    tried = {name: change for name, change in list(changes(file).items())[share::of] if re.search(cases, name)}
    result = {"model": model.name, "used": 0, "refused": 0, "problems": []}
    for outcome in runner.run(list(tried), functools.partial(use, folder, file, tried)):
        if outcome.problem:
            result["problems"].append(f"{outcome.name}: {outcome.problem}")
        else:
            result["refused" if outcome.messages else "used"] += 1
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", default="0/1", help="which changes, as in 3/20; default: all")
    parser.add_argument("--models", default="", help="the architectures; default: all")
    parser.add_argument("--cases", default="", help="the names of changes; default: all")
    options = parser.parse_args()
    share, of = map(int, options.share.split("/"))
    abi.load()
    # A cache for a context of 65536 heads' width takes its time, and its memory.
    runner.CPU_LIMIT_S, runner.MEMORY_LIMIT = 20, 1 << 30
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in make(Path(folder, "models"), options.models):
            result = attack(model, Path(folder, "bundle"), share, of, options.cases)
            print(json.dumps(result), flush=True)
            problems += len(result["problems"])
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
