"""The manifest's fields, its errors, and what hostile ones do: nothing."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path

import _bundle_testing
import pytest
from _bundle_testing import MANIFEST_NAME
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bundle.tree import LITERT_LM, LLAMA_CPP, MLX, error_of, open_bundle
from tests.support.runfile import runfile

SHA256 = "0123456789abcdef" * 4
VALID = {
    "id": "eliza-1-tiny",
    "tier": "tiny",
    "version": "1.2.3",
    "publishedAt": "2026-01-02T03:04:05Z",
    "lineage": {"base": "example/base"},
    "files": {
        "text": [
            {"path": "text/model.gguf", "sha256": SHA256, "ctx": 4096},
            {"path": "text/model.litertlm", "sha256": SHA256, "runtimeClass": "litert-lm"},
            {"path": "text/mlx", "sha256": SHA256, "runtimeClass": "mlx"},
        ],
        "mtp": [{"path": "mtp/drafter-a.gguf", "sha256": SHA256}],
        "tts": [{"anything": True}],
    },
    "kernels": [],
    "evals": {"depth": [[[1.5e3]]]},
    "ramBudgetMb": {"min": 100, "recommended": 200},
    "defaultEligible": True,
}


def write(root: Path, manifest: object) -> Path:
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    (root / MANIFEST_NAME).write_bytes(text)
    return root


def changed(pointer: str, value: object) -> dict:
    """VALID with one value replaced, or removed where `value` is `...`."""
    manifest = copy.deepcopy(VALID)
    *parents, last = (int(part) if part.isdigit() else part for part in pointer.strip("/").split("/"))
    target = manifest
    for part in parents:
        target = target[part]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return manifest


def test_every_field(tmp_path: Path) -> None:
    manifest = open_bundle(write(tmp_path, VALID)).manifest
    assert (manifest.id, manifest.tier, manifest.version) == ("eliza-1-tiny", "tiny", "1.2.3")
    assert [(file.path, file.sha256, file.context_size, file.runtime_class) for file in manifest.text] == [
        ("text/model.gguf", SHA256, 4096, LLAMA_CPP),
        ("text/model.litertlm", SHA256, 0, LITERT_LM),
        ("text/mlx", SHA256, 0, MLX),
    ]
    assert [file.path for file in manifest.mtp] == ["mtp/drafter-a.gguf"]


@pytest.mark.parametrize("manifest", [{"files": {}}, {"files": {"text": []}}, {"files": {"asr": 7}, "future": None}])
def test_the_least(tmp_path: Path, manifest: dict) -> None:
    bundle = open_bundle(write(tmp_path, manifest))
    assert (bundle.manifest.id, bundle.manifest.text, bundle.manifest.mtp) == ("", [], [])
    assert bundle.text_artifact(LLAMA_CPP) is None


@pytest.mark.parametrize(
    "path", ["model.gguf", "a/b/c.gguf", "text/..gguf", "text/ü 🙂.gguf", "...", "C:/x", "a" * 1024]
)
def test_paths(tmp_path: Path, path: str) -> None:
    assert open_bundle(write(tmp_path, changed("/files/text/0/path", path))).manifest.text[0].path == path


@pytest.mark.parametrize(
    ("pointer", "value", "shown", "wanted"),
    [
        ("/id", 7, "7", "a string"),
        ("/tier", None, "null", "a string"),
        ("/version", ["1"], "an array", "a string"),
        ("/files", ..., None, "an object of arrays"),
        ("/files", [], "an array", "an object"),
        ("/files/text", {}, "an object", "an array"),
        ("/files/mtp", "x", '"x"', "an array"),
        ("/files/text/0", "text/model.gguf", '"text/model.gguf"', "an object"),
        ("/files/text/1/path", ..., None, "a path relative to the bundle"),
        ("/files/text/1/path", 1.5, "1.5", "a path relative to the bundle"),
        ("/files/text/1/path", "", '""', "a path relative"),
        ("/files/text/1/path", "/etc/passwd", '"/etc/passwd"', "a path relative"),
        ("/files/text/1/path", "../x.gguf", '"../x.gguf"', "a path relative"),
        ("/files/text/1/path", "text/../../x", '"text/../../x"', "a path relative"),
        ("/files/text/1/path", "text/..", '"text/.."', "a path relative"),
        ("/files/text/1/path", "./x", '"./x"', "a path relative"),
        ("/files/text/1/path", "text//x", '"text//x"', "a path relative"),
        ("/files/text/1/path", "text/", '"text/"', "a path relative"),
        ("/files/text/1/path", "text\\x", '"text\\x"', "a path relative"),
        ("/files/text/1/path", "x\0y", '"x\\x00y"', "a path relative"),
        ("/files/text/1/path", "x\ny", '"x\\x0ay"', "a path relative"),
        ("/files/text/1/path", "a" * 1025, '"aaa', "a path relative"),
        ("/files/text/0/sha256", ..., None, "SHA-256"),
        ("/files/text/0/sha256", SHA256[1:], f'"{SHA256[1:]}"', "64 lower-case hexadecimal digits"),
        ("/files/text/0/sha256", SHA256.upper(), f'"{SHA256.upper()}"', "64 lower-case hexadecimal digits"),
        ("/files/mtp/0/sha256", None, "null", "64 lower-case hexadecimal digits"),
        ("/files/text/0/ctx", 0, "0", "from 1 to 2147483647"),
        ("/files/text/0/ctx", -1, "-1", "from 1 to 2147483647"),
        ("/files/text/0/ctx", 2**31, "2147483648", "from 1 to 2147483647"),
        ("/files/text/0/ctx", 2**64 + 1, "1.8", "from 1 to 2147483647"),
        ("/files/text/0/ctx", 4096.0, "4096.0", "from 1 to 2147483647"),
        ("/files/text/0/ctx", "4096", '"4096"', "from 1 to 2147483647"),
        ("/files/text/0/runtimeClass", "vllm", '"vllm"', 'one of "llama-cpp", "litert-lm", "mlx"'),
        ("/files/text/0/runtimeClass", "MLX", '"MLX"', 'one of "llama-cpp", "litert-lm", "mlx"'),
        ("/files/text/0/runtimeClass", None, "null", 'one of "llama-cpp", "litert-lm", "mlx"'),
    ],
)
def test_errors_name_file_field_value_and_rule(
    tmp_path: Path, pointer: str, value: object, shown: str | None, wanted: str
) -> None:
    message = error_of(open_bundle, write(tmp_path, changed(pointer, value)))
    found = f"is {shown}" if shown else "is missing"
    assert message.startswith(f"{tmp_path}/{MANIFEST_NAME}: {pointer} {found}")
    assert wanted in message.split("; it must be ")[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\x89PNG", "not valid JSON"),
        (b'{"files": {}} x', "not valid JSON"),
        (b'{"files": {},}', "not valid JSON"),
        (b'{"id": "\xff"}', "not valid JSON"),
        (b'{"files": {}, "evals": 1e999}', "not valid JSON"),
        (b'"' + b"x" * 1_000_000, "not valid JSON"),
        (b"[]", "the document is an array; it must be an object"),
        (b"null", "the document is null; it must be an object"),
        (b'{"files": {"text": [], "mtp": [], "text": []}}', "/files/text appears twice"),
        (b'{"files": {"text": [{}, {"path": 1, "path": 1}]}}', "/files/text/1/path appears twice"),
        (b'{"evals": [7, [], {}, {"a/b": 1, "a/b": 1}]}', "/evals/3/a~1b appears twice"),
        (b'{"evals": ' + b"[" * 1_000_000, "nested deeper than 64 levels"),
        (b'{"a":' * 500_000, "nested deeper than 64 levels"),
        (b'{"files": {}, "evals": "' + b"x" * (4 << 20) + b'"}', "larger than 4194304 bytes"),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else "",
)
def test_errors_of_the_whole_file(tmp_path: Path, text: bytes, problem: str) -> None:
    message = error_of(open_bundle, write(tmp_path, text))
    assert message.startswith(f"{tmp_path}/{MANIFEST_NAME}: ") or problem.startswith("larger")
    assert problem in message


def test_deep_and_large_but_within_bounds(tmp_path: Path) -> None:
    deep = {"files": {}, "evals": json.loads("[" * 62 + "]" * 62), "lineage": ["x"] * 100_000}
    assert open_bundle(write(tmp_path, deep)).manifest is not None


def test_a_manifest_that_cannot_be_read_is_not_an_absent_one(tmp_path: Path) -> None:
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / MANIFEST_NAME).symlink_to("nowhere")
    assert "eliza-1.manifest.json: is a link to a file that does not exist" in error_of(open_bundle, tmp_path / "link")

    (tmp_path / "directory" / MANIFEST_NAME).mkdir(parents=True)
    assert "is a directory, not a file" in error_of(open_bundle, tmp_path / "directory")

    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / MANIFEST_NAME)
    assert "is not a regular file" in error_of(open_bundle, tmp_path / "pipe")


def test_a_link_to_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "store").write_text(json.dumps(VALID))
    (tmp_path / MANIFEST_NAME).symlink_to("store")
    assert open_bundle(tmp_path).manifest.id == VALID["id"]


def test_nothing_is_cached(tmp_path: Path) -> None:
    assert open_bundle(tmp_path).manifest is None
    write(tmp_path, VALID)
    assert open_bundle(tmp_path).manifest is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(SHA256),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["files", "text", "mtp", "path", "sha256", "ctx", "runtimeClass", "id"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@st.composite
def nearly_valid(draw: st.DrawFn) -> dict:
    """VALID with up to three values, anywhere, replaced or removed."""
    manifest = VALID
    for _ in range(draw(st.integers(1, 3))):
        manifest = copy.deepcopy(manifest)
        target, places = manifest, []
        while isinstance(target, dict | list) and target:
            key = draw(st.sampled_from(sorted(target) if isinstance(target, dict) else range(len(target))))
            places.append((target, key))
            target = target[key]
        parent, key = draw(st.sampled_from(places))
        value = draw(JSON | st.just(...))
        if value is ...:
            del parent[key]
        else:
            parent[key] = value
    return manifest


def check_survives(root: Path, text: bytes) -> None:
    """Opens, or fails with an error that names the file; and then every probe does, too."""
    write(root, text)
    try:
        bundle = open_bundle(root)
        for runtime_class in (LLAMA_CPP, LITERT_LM, MLX):
            bundle.has_text_artifact(runtime_class)
        for runtime_class in (LLAMA_CPP, LITERT_LM, MLX):
            bundle.text_artifact(runtime_class)
    except _bundle_testing.Error as error:
        assert error.args[1].startswith(f"{root}/{MANIFEST_NAME}")
        assert len(error.args[1]) < 4096


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundle")


@settings(max_examples=300)
@given(manifest=JSON | nearly_valid())
def test_any_json(scratch: Path, manifest: object) -> None:
    check_survives(scratch, json.dumps(manifest).encode())


@settings(max_examples=300)
@given(start=st.integers(0, 700), removed=st.integers(0, 10), added=st.binary(max_size=4))
def test_any_damage(scratch: Path, start: int, removed: int, added: bytes) -> None:
    text = json.dumps(VALID).encode()
    check_survives(scratch, text[:start] + added + text[start + removed :])


def test_the_example_of_the_document(tmp_path: Path) -> None:
    document = Path(runfile("docs/bundle.md")).read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    manifest = open_bundle(write(tmp_path, example.encode())).manifest
    rows = re.findall(r"^\| (`.*?`) \|", document, re.MULTILINE)
    described = set(re.findall(r"\w+", " ".join(rows)))
    assert manifest.text
    assert manifest.mtp
    assert set(json.loads(example)) <= described
    assert {key for file in json.loads(example)["files"]["text"] for key in file} <= described
