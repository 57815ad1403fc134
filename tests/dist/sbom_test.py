"""Bills of materials name every pinned input with the hash that extensions.bzl has."""

from __future__ import annotations

import json
import re

import pytest

from dist import pins, sbom
from tests.support.runfile import runfile

EXTENSIONS = runfile("third_party/extensions.bzl")
PINNED = pins.read(EXTENSIONS)
LLAMA = {"name": "llama.cpp", "version": "0c1e57098", "license": "MIT", "pin": "llama_cpp", "role": "linked"}
ZIG = {"name": "Zig", "version": "0.17.1", "license": "MIT", "pin": "ziglang", "role": "build"}


def test_every_hash_of_a_pinned_archive_is_read():
    # `checks` are hashes of files inside an archive, and not of something that is fetched.
    text = re.sub(r"^ *checks = .*$", "", EXTENSIONS.read_text(), flags=re.MULTILINE)
    hashes = set(re.findall(r"\b[0-9a-f]{64}\b", text))
    assert len(hashes) > 10
    assert hashes == {pin.sha256 for pinned in PINNED.values() for pin in pinned}


def test_pins():
    (llama,) = PINNED["llama_cpp"]
    assert (llama.index, llama.name, llama.platform) == ("pypi", "llama-cpp-python", "")
    assert llama.purl == f"pkg:pypi/llama-cpp-python@{llama.version}"
    assert llama.patches[0] == "0001-ggml-log-instead-of-stdio.patch"
    assert [pin.platform for pin in PINNED["ziglang"]] == [
        "manylinux_2_17_aarch64",
        "manylinux_2_12_x86_64",
        "macosx_13_0_arm64",
    ]
    assert "pkg:npm/%40oven/bun-linux-aarch64@" in PINNED["bun"][0].purl


@pytest.fixture
def document(tmp_path):
    library = tmp_path / "library"
    library.write_bytes(b"abc")
    return sbom.bill("package", "1.2.3", {"lib/x.so": library}, [ZIG, LLAMA], PINNED)


def test_it_is_what_spdx_asks_for(document):
    assert document["spdxVersion"] == "SPDX-2.3"
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", document["documentNamespace"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"])
    elements = document["packages"] + document["files"]
    identifiers = [element["SPDXID"] for element in elements]
    assert len(set(identifiers)) == len(identifiers)
    assert [identifier for identifier in identifiers if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", identifier)] == []
    for package in document["packages"]:
        assert {"name", "SPDXID", "downloadLocation", "licenseDeclared", "licenseConcluded"} <= package.keys()
    known = {"SPDXRef-DOCUMENT", *identifiers}
    for relationship in document["relationships"]:
        assert {relationship["spdxElementId"], relationship["relatedSpdxElement"]} <= known


def test_files_components_and_inputs(document):
    (file,) = document["files"]
    assert file["fileName"] == "./lib/x.so"
    sha256 = {checksum["algorithm"]: checksum["checksumValue"] for checksum in file["checksums"]}["SHA256"]
    assert sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    packages = {package["SPDXID"]: package for package in document["packages"]}
    related = {
        (each["spdxElementId"], each["relationshipType"], each["relatedSpdxElement"])
        for each in document["relationships"]
    }
    assert ("SPDXRef-Package", "STATIC_LINK", "SPDXRef-Component-llama.cpp") in related
    assert ("SPDXRef-Component-Zig", "BUILD_TOOL_OF", "SPDXRef-Package") in related
    for name, pin in [("llama.cpp", "llama_cpp"), ("Zig", "ziglang")]:
        sources = {source for one, kind, source in related if (one, kind) == (f"SPDXRef-Component-{name}", "CONTAINED_BY")}
        hashes = {packages[source]["checksums"][0]["checksumValue"] for source in sources}
        assert hashes == {each.sha256 for each in PINNED[pin]}


def test_the_namespace_is_the_contents(document, tmp_path):
    other = sbom.bill("package", "1.2.3", {"lib/x.so": tmp_path / "library"}, [LLAMA, ZIG], PINNED)
    assert other == document
    (tmp_path / "library").write_bytes(b"abd")
    changed = sbom.bill("package", "1.2.3", {"lib/x.so": tmp_path / "library"}, [LLAMA, ZIG], PINNED)
    assert changed["documentNamespace"] != document["documentNamespace"]
    assert json.dumps(changed) != json.dumps(document)


def test_a_component_of_nothing():
    with pytest.raises(SystemExit, match="declares no nothing"):
        sbom.bill("package", "1", {}, [LLAMA | {"pin": "nothing"}], PINNED)
