"""Markdown while it is being written: whole blocks, nothing lost, and a terminal that scrolls is no worse off."""

from __future__ import annotations

import io
import re

from elizainference.cli._markdown import MarkdownWriter, split_finished
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

ANSWER = """\
# Title

A paragraph with **bold** words.

1. one

   still one
2. two

```python
def f():

    return 1
```

The end.
"""


def test_blocks():
    blocks, rest = [], ""
    for character in ANSWER:
        finished, rest = split_finished(rest + character)
        if finished:
            blocks.append(finished)
    assert [block.split("\n")[0] for block in [*blocks, rest]] == [
        "# Title",
        "A paragraph with **bold** words.",
        "1. one",
        "```python",
        "The end.",
    ]
    assert "".join(blocks) + rest == ANSWER


@given(st.lists(st.sampled_from(["a", "\n", "\n\n", "```\n", "~~~\n", "  b", "- c", " "]), max_size=30))
def test_nothing_is_lost_and_no_fence_is_cut(pieces):
    text = "".join(pieces)
    finished, rest = split_finished(text)
    assert finished + rest == text
    # Whatever is added, the same is finished, or more.
    more, _ = split_finished(text + "\n\nmore\n\nand more")
    assert more.startswith(finished)


def _shown(pieces: list[str], **options) -> str:
    file = io.StringIO()
    writer = MarkdownWriter(Console(file=file, width=40, height=8, **options))
    for piece in pieces:
        writer.write(piece)
    writer.end()
    return file.getvalue()


def test_the_text_is_that_of_the_whole():
    shown = _shown(list(ANSWER))
    lines = [line.strip() for line in shown.splitlines()]
    for expected in ("A paragraph with bold words.", "1 one", "2 two", "def f():", "return 1", "The end."):
        assert any(expected in line for line in lines), shown
    # Blocks are apart.
    assert re.search(r"words\. *\n *\n", shown)


def test_the_cursor_comes_back_after_an_error():
    shown = _shown(["half a para", "graph"], force_terminal=True)
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l") >= 0


def test_control_characters_are_shown():
    assert "\x1b" not in _shown(["a\x1b[31mb\x07"])
    assert "␛[31mb␇" in _shown(["a\x1b[31mb\x07"])
