"""What the documents name is there: files, targets, environment variables, and messages that cannot be produced here.

Whatever the tree holds can be named, so this test reads the tree itself and not its runfiles. Bazel cannot know
what has changed for it, and runs it each time (the tag `external`).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs import quoted
from tests.docs.markdown import anchors, code_spans, fences, links, rows, sections, without_fences
from tests.support.runfile import runfile

# A runfile is a link to the file in the tree.
ROOT = runfile("LICENSE").resolve().parent

SOURCES = ["bazelw", "bench", "dist", "e2e", "examples", "native", "platforms", "python", "third_party", "tools"]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "tools/**/*.md", "third_party/**/*.md", "native/**/*.md")
    for path in ROOT.glob(pattern)
)


@cache
def _text(document: str) -> str:
    return (ROOT / document).read_text()


@cache
def _sources() -> dict[Path, str]:
    """The text of our sources, documents not included."""
    trees = [ROOT / name for name in SOURCES]
    files = [path for tree in trees for path in (tree.rglob("*") if tree.is_dir() else [tree]) if path.is_file()]
    return {path: path.read_text(errors="replace") for path in files if path.suffix not in (".md", ".pyc")}


def _code(document: str) -> list[str]:
    """What the document writes as code: spans, and the commands of its blocks."""
    text = _text(document)
    return [*code_spans(without_fences(text)), *fences(text, "sh"), *fences(text, "cmake")]


def test_there_are_documents():
    assert {"README.md", "CONTRIBUTING.md", "docs/troubleshooting.md", "tools/private_root/README.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document):
    broken = []
    for link in links(without_fences(_text(document))):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / document).parent / path if path else ROOT / document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            broken.append(link)
    assert not broken, f"links to nothing: {broken}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths(document):
    # bazel-bin and the like are made by a build; what a bundle holds is no path of the tree.
    tops = "|".join([*SOURCES, "docs", "tests", r"\.ci"])
    paths = {match for code in _code(document) for match in re.findall(rf"(?<![\w/.-])((?:{tops})/[\w./-]+)", code)}
    places = (ROOT, (ROOT / document).parent)
    missing = [path for path in sorted(paths) if not any((place / path).exists() for place in places)]
    assert not missing, f"no such files: {missing}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_targets(document):
    labels = {match for code in _code(document) for match in re.findall(r"(?<![:\w])//[\w/]*(?::[\w-]+)?", code)}
    missing = []
    for label in labels:
        package, _, name = label[2:].partition(":")
        build = ROOT / package / "BUILD.bazel"
        if package == "" and name == "":  # `//...`
            continue
        if not build.exists():
            missing.append(label)
        # Also one name of a list that targets are made from, and the test that a macro makes beside its target.
        elif name not in ("", "all") and not any(
            f'"{known}"' in build.read_text() for known in (name, name.removesuffix("_test"))
        ):
            missing.append(label)
    assert not missing, f"no such targets: {missing}"


def _variables() -> set[str]:
    """The environment variables that our sources read."""
    reads = (
        r'(?:getenv|variable)\(\s*"(ELIZA_\w+)"',  # C++
        r'k\w*Variable\[\] = "(ELIZA_\w+)"',
        r'environ(?:\.get\(|\[)"(ELIZA_\w+)"',  # Python
        r"\$\{(ELIZA_\w+)",  # the shell
    )
    return {name for text in _sources().values() for read in reads for name in re.findall(read, text)}


def test_variables_are_documented():
    body = sections(_text("docs/building.md"))["Environment variables"]
    documented = {name for first, *_ in rows(body) for name in code_spans(first)}
    differing = documented ^ (_variables() | {"XDG_CACHE_HOME"})
    assert not differing, f"documented or read, but not both: {sorted(differing)}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_names(document):
    """ELIZA_*: variables, or macros of the header."""
    header = (ROOT / "native/include/eliza-inference-ffi.h").read_text()
    known = _variables() | set(re.findall(r"#define (ELIZA_\w+)", header))
    # `ELIZA_ERR_*` stands for several.
    named = set(re.findall(r"ELIZA_\w*[A-Z0-9]\b", "\n".join(_code(document))))
    assert named <= known, f"no such names: {sorted(named - known)}"


def test_what_includes_what():
    includes: dict[str, set[str]] = {}
    backends: set[tuple[str, str]] = set()
    for path, text in _sources().items():
        folder, _, rest = str(path.relative_to(ROOT)).removeprefix("native/").partition("/")
        if not path.is_relative_to(ROOT / "native") or not rest:
            continue
        included = re.findall(r'#include "native/(\w+)/([\w-]+)', text)
        includes.setdefault(f"native/{folder}", set()).update(other for other, _ in included if other != folder)
        if folder == "backends":
            backends.update((rest.partition("/")[0], name) for other, name in included if other == folder)
    table = {code_spans(row[0])[0]: set(code_spans(row[2])) for row in rows(_text("docs/architecture.md"))}
    assert {"native/ffi", "native/seam", "native/backends"} <= includes.keys()
    for folder, names in includes.items():
        assert table[folder] == names, f"{folder} includes {sorted(names)}"
    for backend, other in backends:
        assert backend == other, f"native/backends/{backend} includes {other}"


def _messages() -> list[str]:
    building = quoted.messages(_text("docs/troubleshooting.md"))[quoted.BUILDING]
    return [*(message for message in building if message not in quoted.FOREIGN), *quoted.NOT_PRODUCED]


@pytest.mark.parametrize("message", _messages())
def test_messages_that_no_test_produces(message):
    pattern = quoted.pattern(message, between=".{0,200}?")
    # Strings that stand side by side are one; the shell puts a blank between them.
    adjacent = re.compile(r'"(?: (\\))?\n\s*f?"')
    joined = (adjacent.sub(lambda match: " " if match[1] else "", text) for text in _sources().values())
    assert any(pattern.search(text) for text in joined)
