"""The documents as a site, up to MkDocs: tools/docs/stage.py finds every link, and its references name everything."""

from __future__ import annotations

import re
from pathlib import Path

import elizainference as eliza
import pytest
from stage import stage

from tests.docs.markdown import anchors, links, without_fences
from tests.support import abi
from tests.support.runfile import runfile

# A runfile is a link to the file in the tree.
ROOT = runfile("LICENSE").resolve().parent


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    stage(ROOT, folder)
    return folder


def test_every_page_is_in_the_navigation(site):
    named = set(re.findall(r"[\w/]+\.md", (site / "mkdocs.yml").read_text()))
    assert named == {str(page.relative_to(site / "docs")) for page in (site / "docs").rglob("*.md")}


def test_links(site):
    for page in (site / "docs").glob("*.md"):
        for link in links(without_fences(page.read_text())):
            if not re.match(r"https?://", link):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                assert target.exists(), f"{page.name}: {link}"
                assert not anchor or anchor in anchors(target.read_text()), f"{page.name}: {link}"


def test_the_references_name_everything(site):
    c = (site / "docs" / "reference" / "c.md").read_text()
    assert [name for name in abi.SIGNATURES if f"eliza_inference_{name}(" not in c] == []
    python = (site / "docs" / "reference" / "python.md").read_text()
    named = set(re.findall(r"^::: elizainference\.\w+\.(\w+)$", python, re.MULTILINE))
    assert named == set(eliza.__all__) - {"__version__"}


def test_a_link_to_nothing_is_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("")
    (tmp_path / "README.md").write_text("[x](docs/gone.md)")
    with pytest.raises(SystemExit, match="gone.md"):
        stage(tmp_path, tmp_path / "out")
