"""Writes native/text/unicode-classes.inc: which characters the pre-tokenizers of a tokenizer.json take for letters and
numbers, read off the `tokenizers` package itself, whose two engines (Oniguruma, Rust) follow two versions of Unicode.

    ./bazelw run //tests/text:make_unicode_classes > native/text/unicode-classes.inc
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex
from tokenizers.pre_tokenizers import Digits, PreTokenizer, Split

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matched(expression: str) -> set[str]:
    """The characters that a regular expression of a tokenizer.json matches."""
    split = Split(Regex(expression), "removed")
    found: set[str] = set()
    for begin in range(0, len(CHARACTERS), 16384):
        some = "".join(CHARACTERS[begin : begin + 16384])
        found |= set(some) - set("".join(part for part, _ in split.pre_tokenize_str(some)))
    return found


def digits() -> set[str]:
    """The characters that the Digits pre-tokenizer isolates."""
    split: PreTokenizer = Digits(individual_digits=True)
    return {c for c in CHARACTERS if len(split.pre_tokenize_str(f"x{c}x")) == 3}


def ranges(characters: Iterable[str]) -> list[tuple[int, int]]:
    """The first and the last of every run of code points."""
    runs: list[tuple[int, int]] = []
    for code in sorted(map(ord, characters)):
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


def table(name: str, characters: set[str]) -> str:
    """A C++ array of the ranges."""
    lines = [f"constexpr Range {name}[] = {{"]
    line = "   "
    for first, last in ranges(characters):
        item = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(item) > 120:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([*lines, line, "};"])


def main() -> None:
    """Prints the tables."""
    numbers = matched(r"\p{N}")
    print("// Made by //tests/text:make_unicode_classes from the `tokenizers` package; do not edit.")
    print("// clang-format off")
    print(table("kLetters", matched(r"\p{L}")))
    print(table("kNumbers", numbers))
    print("// What Digits isolates besides.")
    print(table("kNewerNumbers", digits() - numbers))
    print("// clang-format on")


if __name__ == "__main__":
    main()
