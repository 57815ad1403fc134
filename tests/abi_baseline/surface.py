"""What a compiled client has of the C ABI: declarations, numbers and offsets, read from a header by a compiler."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def declarations(header: Path) -> set[str]:
    """The function declarations of a header, on one line each."""
    found = re.findall(
        r"ELIZA_INFERENCE_API\s+([^;]*?\beliza_inference_\w+\([^;]*\));", _without_comments(header.read_text())
    )
    return {" ".join(declaration.split()) for declaration in found}


def _constants(text: str) -> list[str]:
    return re.findall(r"#define (ELIZA_(?:OK|ERR)\w*)", text)


def _fields(text: str) -> list[tuple[str, str]]:
    """(struct, field) of every struct, in the order of the file."""
    pairs = []
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.DOTALL):
        body = re.sub(r"^#.*$", "", body, flags=re.MULTILINE)
        pairs += [(name, field) for field in re.findall(r"(\w+)\s*;", body)]
    return pairs


def numbers(header: Path, version: int, folder: Path) -> dict[str, int]:
    """Status codes, sizes and offsets, as a C compiler sees them for an ABI version; `folder` is for its files."""
    text = _without_comments(header.read_text())
    newer = re.compile(r"#if ELIZA_INFERENCE_ABI_VERSION >= (\d+)\n(.*?)#(?:else.*?#)?endif", re.DOTALL)
    text = newer.sub(lambda match: match[2] if int(match[1]) <= version else "", text)
    expressions = {name: name for name in _constants(text)}
    for struct, field in _fields(text):
        expressions[f"sizeof {struct}"] = f"sizeof({struct})"
        expressions[f"offset {struct}.{field}"] = f"offsetof({struct}, {field})"
        expressions[f"size {struct}.{field}"] = f"sizeof((({struct}*)0)->{field})"
    lines = "".join(f'  printf("%s\\t%ld\\n", "{what}", (long)({value}));\n' for what, value in expressions.items())
    source = folder / "probe.c"
    source.write_text(f'#include "{header}"\n#include <stdio.h>\n\nint main(void) {{\n{lines}  return 0;\n}}\n')
    compiler = os.environ.get("CC") or "cc"
    program = folder / "probe"
    command = [compiler, "-std=c99", f"-DELIZA_INFERENCE_ABI_VERSION={version}", str(source), f"-o{program}"]
    subprocess.run(command, check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {what: int(value) for what, value in (line.split("\t") for line in output.splitlines())}


def broken(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """What of `before` is another in `after`, or gone: each breaks a compiled client. Additions break none."""
    return [f"{what}: {value}, now {after.get(what)}" for what, value in before.items() if after.get(what) != value]
