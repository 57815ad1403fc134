"""As much of Markdown as the documents of this workspace use."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def fences(text: str, language: str) -> list[str]:
    """The code blocks in this language."""
    return [body for name, body in _FENCE.findall(text) if name == language]


def without_fences(text: str) -> str:
    """The text without its code blocks."""
    return _FENCE.sub("", text)


def sections(text: str) -> dict[str, str]:
    """{heading: what is below it}, for the headings of the second level."""
    title_and_body = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return dict(zip(title_and_body[::2], title_and_body[1::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """The rows of all tables in the text, cells without their blanks; heads and the lines below them left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = [i for i, row in enumerate(cells) if all(re.fullmatch(":?-+:?", cell) for cell in row)]
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def code_spans(text: str) -> list[str]:
    """What stands between backticks."""
    return [span.strip() for _, span in re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", text)]


def links(text: str) -> list[str]:
    """The targets of links."""
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(text: str) -> set[str]:
    """The fragments that headings can be linked by, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_fences(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
