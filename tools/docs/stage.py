"""The documents as MkDocs wants them: README.md as the first page, references that are generated, links that hold.

stage.py ROOT FOLDER: writes FOLDER/mkdocs.yml and FOLDER/docs.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")

# What only a compiler reads.
_GUARD = re.compile(
    r"^#(?:(?:ifndef|define) ELIZA_INFERENCE_FFI_H_|ifdef __cplusplus|endif.*)$\n?|^(?:extern \"C\" \{|\})$\n?",
    re.MULTILINE,
)


def stage(root: Path, folder: Path) -> None:
    """Makes the copy that is built."""
    docs = folder / "docs"
    shutil.copytree(root / "docs", docs, ignore=shutil.ignore_patterns("BUILD.bazel"))
    shutil.copyfile(root / "README.md", docs / "index.md")
    config = (root / "mkdocs.yml").read_text()
    (folder / "mkdocs.yml").write_text(config.replace("../../python", str(root / "python")))
    for page in docs.glob("*.md"):
        source = root if page.name == "index.md" else root / "docs"
        page.write_text(_with_links_of(page.read_text(), source, root))
    (docs / "reference").mkdir()
    (docs / "reference" / "python.md").write_text(python_reference(root))
    (docs / "reference" / "c.md").write_text(c_reference(root))


def _with_links_of(text: str, source: Path, root: Path) -> str:
    return _LINK.sub(lambda match: _linked(match, source, root), text)


def _linked(match: re.Match[str], source: Path, root: Path) -> str:
    """A link as the site has it: between documents; of one to a source file, its text."""
    text, target = match[1], match[2]
    place, _, anchor = target.partition("#")
    if not place or re.match(r"[a-z]+:", place):
        return match[0]
    path = Path(os.path.normpath(source / place))
    if not path.exists():
        raise SystemExit(f"{source}: a link to {target}, which is not there")
    if path == root / "README.md":
        page = "index.md"
    elif path.is_relative_to(root / "docs"):
        page = str(path.relative_to(root / "docs"))
    else:
        return text
    return f"[{text}]({page}{'#' + anchor if anchor else ''})"


def python_reference(root: Path) -> str:
    """A page that mkdocstrings fills from the docstrings of all public names."""
    text = (root / "python" / "elizainference" / "__init__.py").read_text()
    names = re.findall(r'^    "(\w+)",$', text[text.index("__all__") :], re.MULTILINE)
    public = sorted((name for name in names if not name.startswith("_")), key=lambda name: (name != "Engine", name))
    modules = _modules(root, set(public))
    entries = [f"::: {modules[name]}.{name}\n" for name in public]
    return "# Python reference\n\nGenerated from the docstrings.\n\n" + "\n".join(entries)


def _modules(root: Path, names: set[str]) -> dict[str, str]:
    """{public name: the module that defines it}."""
    found = {}
    for path in sorted((root / "python" / "elizainference").glob("*.py")):
        for name in re.findall(r"^(?:class )?(\w+)(?:\(|:)", path.read_text(), re.MULTILINE):
            if name in names:
                found.setdefault(name, f"elizainference.{path.stem}")
    missing = names - found.keys()
    if missing:
        raise SystemExit(f"elizainference/__init__.py names what no module defines: {sorted(missing)}")
    return found


def c_reference(root: Path) -> str:
    """The header as a page: each comment above what it is about."""
    header = (root / "native" / "include" / "eliza-inference-ffi.h").read_text()
    parts = re.findall(r"/\*(.*?)\*/(.*?)(?=/\*|\Z)", header, re.DOTALL)
    page = ["# C reference", "", "Generated from `native/include/eliza-inference-ffi.h`.", ""]
    for comment, code in parts:
        words = "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip().splitlines())
        declaration = _GUARD.sub("", code).strip()
        if names := re.findall(r"\b(eliza_inference_\w+)\(", declaration):
            page += [f"### `{names[0]}`", ""]
        # As it is written: the header's lists and loops are made of blanks.
        page += ["```text", words.strip(), "```", ""]
        if declaration:
            page += ["```c", declaration, "```", ""]
    return "\n".join(page)


if __name__ == "__main__":
    stage(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
