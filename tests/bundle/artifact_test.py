"""Which file of a bundle a backend opens."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from _bundle_testing import MANIFEST_NAME

from tests.bundle.tree import LITERT_LM, LLAMA_CPP, MLX, artifact, error_of, make, open_bundle

CLASSES = {"llama-cpp": LLAMA_CPP, "litert-lm": LITERT_LM, "mlx": MLX}


def entry(path: str, **fields) -> dict:
    return {"path": path, "sha256": "0" * 64, **fields}


def write_manifest(root: Path, *text: dict) -> None:
    (root / MANIFEST_NAME).write_text(json.dumps({"files": {"text": list(text)}}))


# Without a manifest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paths", [[], ["text/"], ["text/readme.md"], ["model.gguf"], ["text/sub/model.gguf"]])
def test_nothing(tmp_path: Path, paths: list[str]) -> None:
    bundle = open_bundle(make(tmp_path, *paths))
    assert bundle.manifest is None
    for runtime_class in CLASSES.values():
        assert bundle.text_artifact(runtime_class) is None
        assert not bundle.has_text_artifact(runtime_class)
    assert bundle.coreml_packages() == []


@pytest.mark.parametrize(
    ("paths", "runtime_class", "found"),
    [
        (["text/model.gguf"], LLAMA_CPP, "text/model.gguf"),
        (["text/model.litertlm"], LITERT_LM, "text/model.litertlm"),
        (["text/config.json", "text/model.safetensors"], MLX, "text"),
        (["text/model/config.json", "text/model/model.safetensors"], MLX, "text/model"),
    ],
)
def test_the_only_one(tmp_path: Path, paths: list[str], runtime_class, found: str) -> None:
    # What is not a model of the class, however much it looks like one.
    make(tmp_path, "text/directory.gguf/", "text/directory.litertlm/", "text/._model.gguf", "text/.x.litertlm")
    make(tmp_path, "text/empty/", "text/half/config.json", "text/other/model.safetensors", "mtp/drafter-a.gguf")
    make(tmp_path, "text/coreml.mlpackage/config.json", "text/coreml.mlpackage/x.safetensors", "text/notes.gguf.txt")
    make(tmp_path, *paths)
    for other in CLASSES.values():
        assert artifact(tmp_path, other) == (found if other == runtime_class else None)
        assert open_bundle(tmp_path).has_text_artifact(other) == (other == runtime_class)
    assert open_bundle(tmp_path).text_artifact(runtime_class).context_size == 0


@pytest.mark.parametrize(
    ("paths", "runtime_class", "named"),
    [
        (["text/b.gguf", "text/a.gguf"], LLAMA_CPP, '"text/a.gguf", "text/b.gguf"'),
        (["text/b.litertlm", "text/a.litertlm"], LITERT_LM, '"text/a.litertlm", "text/b.litertlm"'),
        (
            ["text/config.json", "text/x.safetensors", "text/m/config.json", "text/m/x.safetensors"],
            MLX,
            '"text", "text/m"',
        ),
        (["text/a-00001-of-00001.gguf", "text/b.gguf"], LLAMA_CPP, '"text/a-00001-of-00001.gguf", "text/b.gguf"'),
        (
            ["text/a-00001-of-00002.gguf", "text/a-00001-of-00003.gguf"],
            LLAMA_CPP,
            '"text/a-00001-of-00002.gguf", "text/a-00001-of-00003.gguf"',
        ),
        (
            ["text/a-00001-of-00002.gguf", "text/b-00002-of-00002.gguf"],
            LLAMA_CPP,
            '"text/a-00001-of-00002.gguf", "text/b-00002-of-00002.gguf"',
        ),
    ],
)
def test_two_are_an_error_that_lists_them(tmp_path: Path, paths: list[str], runtime_class, named: str) -> None:
    bundle = open_bundle(make(tmp_path, *paths))
    message = error_of(bundle.text_artifact, runtime_class)
    assert message.startswith(f"{tmp_path}/text holds 2 artifacts")
    assert named in message
    assert MANIFEST_NAME in message
    assert bundle.has_text_artifact(runtime_class)


def test_a_thousand_are_an_error_that_lists_some(tmp_path: Path) -> None:
    bundle = open_bundle(make(tmp_path, *(f"text/{i:04}.gguf" for i in range(1000))))
    message = error_of(bundle.text_artifact, LLAMA_CPP)
    assert "1000 artifacts" in message
    assert '"text/0007.gguf" and 992 more' in message


def test_links_are_followed(tmp_path: Path) -> None:
    store = make(tmp_path / "store", "blob", "mlx/config.json", "mlx/a.safetensors", "parts/")
    root = make(tmp_path / "bundle", "text/")
    (root / "text/model.gguf").symlink_to(store / "blob")
    (root / "text/model.litertlm").symlink_to("../../store/blob")
    (root / "text/mlx").symlink_to(store / "mlx")
    (root / "text/directory.gguf").symlink_to(store / "parts")
    (tmp_path / "link").symlink_to(root)
    assert artifact(tmp_path / "link", LLAMA_CPP) == "text/model.gguf"
    assert artifact(tmp_path / "link", LITERT_LM) == "text/model.litertlm"
    assert artifact(tmp_path / "link", MLX) == "text/mlx"


def test_a_dangling_link_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, "text/")
    (tmp_path / "text/model.gguf").symlink_to("nowhere")
    message = error_of(open_bundle(tmp_path).text_artifact, LLAMA_CPP)
    assert f"{tmp_path}/text/model.gguf is a link to a file that does not exist" in message


def test_the_advice_fits_what_keeps_a_file_from_being_read(tmp_path: Path) -> None:
    """What cannot be looked at is not to blame: here for a link to itself, as it may be for who may not look."""
    make(tmp_path, "text/")
    (tmp_path / "text/model.gguf").symlink_to("model.gguf")
    unreadable = "cannot be read: Too many levels of symbolic links; make it readable"
    assert error_of(open_bundle(tmp_path).text_artifact, LLAMA_CPP).endswith(f"{unreadable}, or remove it")
    (tmp_path / "text/mlx").symlink_to("mlx")
    (tmp_path / "text/model").mkdir()
    (tmp_path / "text/model/config.json").symlink_to("config.json")
    for path, runtime_class in (("text/model.gguf", "llama-cpp"), ("text/mlx", "mlx"), ("text/model", "mlx")):
        write_manifest(tmp_path, entry(path, runtimeClass=runtime_class))
        message = error_of(open_bundle(tmp_path).text_artifact, CLASSES[runtime_class])
        assert message.endswith(f"{unreadable}, or correct the manifest")


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    make(tmp_path, "text/")
    os.mkfifo(tmp_path / "text/model.gguf")
    assert "model.gguf is not a regular file" in error_of(open_bundle(tmp_path).text_artifact, LLAMA_CPP)


def test_text_that_is_a_file(tmp_path: Path) -> None:
    message = error_of(open_bundle(make(tmp_path, "text")).text_artifact, LLAMA_CPP)
    assert message == f"{tmp_path}/text cannot be listed: Not a directory"


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    root = make(tmp_path / os.fsdecode(b"b\xff"), b"text/caf\xe9.gguf")
    assert artifact(root, LLAMA_CPP) == os.fsdecode(b"text/caf\xe9.gguf")
    make(root, b"text/\xf0\x9f.gguf", "text/line\nbreak.gguf")
    message = error_of(open_bundle(root).text_artifact, LLAMA_CPP)
    assert "caf\ufffd.gguf" in message
    assert "line\\x0abreak.gguf" in message


def test_coreml_packages(tmp_path: Path) -> None:
    make(tmp_path, "text/b.mlpackage/Manifest.json", "text/a.mlmodelc/", "text/file.mlpackage", "text/x.gguf")
    assert open_bundle(tmp_path).coreml_packages() == [b"text/a.mlmodelc", b"text/b.mlpackage"]


# Split GGUF sets ---------------------------------------------------------------------------------------------------


def parts(count: int, *chosen: int, name: str = "text/m") -> list[str]:
    return [f"{name}-{part:05}-of-{count:05}.gguf" for part in (chosen or range(1, count + 1))]


@pytest.mark.parametrize("count", [1, 3, 12])
def test_a_complete_set_is_one_artifact(tmp_path: Path, count: int) -> None:
    assert artifact(make(tmp_path, *parts(count)), LLAMA_CPP) == parts(count, 1)[0]


@pytest.mark.parametrize("present", [[1], [2], [1, 3], [2, 3]])
def test_an_incomplete_set_lists_what_is_missing(tmp_path: Path, present: list[int]) -> None:
    bundle = open_bundle(make(tmp_path, *parts(3, *present)))
    missing = parts(3, *({1, 2, 3} - set(present)))
    message = error_of(bundle.text_artifact, LLAMA_CPP)
    assert "one file of 3" in message
    assert message.startswith(f"{tmp_path}/{parts(3, *present)[0]} ")
    assert f"missing: {', '.join(json.dumps(path) for path in missing)}" in message
    assert bundle.has_text_artifact(LLAMA_CPP)


def test_a_name_that_claims_99999_parts(tmp_path: Path) -> None:
    message = error_of(open_bundle(make(tmp_path, *parts(99999, 7))).text_artifact, LLAMA_CPP)
    assert "one file of 99999" in message
    assert "more" in message


@pytest.mark.parametrize(
    "name",
    ["m-00000-of-00002", "m-00003-of-00002", "m-1-of-2", "m-000001-of-000002", "m-0001a-of-00002", "m-+0001-of-00002"],
)
def test_names_that_only_resemble_a_part(tmp_path: Path, name: str) -> None:
    assert artifact(make(tmp_path, f"text/{name}.gguf"), LLAMA_CPP) == f"text/{name}.gguf"


# With a manifest ---------------------------------------------------------------------------------------------------


def test_the_manifest_decides(tmp_path: Path) -> None:
    make(tmp_path, "text/a.gguf", "text/b.gguf", "text/c.litertlm", "text/d.litertlm", "models/m/config.json")
    make(tmp_path, "models/m/1.safetensors")
    write_manifest(
        tmp_path,
        entry("text/b.gguf", ctx=4096),
        entry("text/c.litertlm", runtimeClass="litert-lm", ctx=2048),
        entry("models/m", runtimeClass="mlx"),
    )
    bundle = open_bundle(tmp_path)
    assert [artifact(tmp_path, runtime_class) for runtime_class in (LLAMA_CPP, LITERT_LM, MLX)] == [
        "text/b.gguf",
        "text/c.litertlm",
        "models/m",
    ]
    assert bundle.text_artifact(LLAMA_CPP).context_size == 4096
    assert bundle.text_artifact(LITERT_LM).context_size == 2048
    assert bundle.text_artifact(MLX).context_size == 0


def test_what_the_manifest_does_not_name_does_not_exist(tmp_path: Path) -> None:
    make(tmp_path, "text/a.gguf", "text/b.litertlm")
    write_manifest(tmp_path, entry("text/b.litertlm", runtimeClass="litert-lm"))
    assert artifact(tmp_path, LLAMA_CPP) is None
    assert not open_bundle(tmp_path).has_text_artifact(LLAMA_CPP)
    assert open_bundle(tmp_path).has_text_artifact(LITERT_LM)


@pytest.mark.parametrize(
    ("runtime_class", "present", "problem"),
    [
        ("llama-cpp", [], "does not exist"),
        ("litert-lm", [], "does not exist"),
        ("mlx", [], "does not exist"),
        ("llama-cpp", ["text/m/"], "is a directory, not a file"),
        ("mlx", ["text/m"], "is not a directory"),
        ("mlx", ["text/m/x.safetensors"], "has no config.json: it does not exist"),
        ("mlx", ["text/m/config.json"], "has no *.safetensors"),
    ],
)
def test_an_entry_whose_file_is_unusable(tmp_path: Path, runtime_class: str, present: list[str], problem: str) -> None:
    make(tmp_path, "text/other.gguf", *present)
    write_manifest(tmp_path, entry("text/m", runtimeClass=runtime_class))
    bundle = open_bundle(tmp_path)
    message = error_of(bundle.text_artifact, CLASSES[runtime_class])
    assert message.startswith(f"{tmp_path}/{MANIFEST_NAME}: /files/text/0/path: {tmp_path}/text/m {problem}; ")
    assert bundle.has_text_artifact(CLASSES[runtime_class])


def test_two_entries_of_a_class(tmp_path: Path) -> None:
    make(tmp_path, "text/a.gguf", "text/b.gguf", "text/c.gguf")
    write_manifest(tmp_path, entry("text/b.gguf"), entry("c", runtimeClass="mlx"), entry("text/a.gguf"))
    message = error_of(open_bundle(tmp_path).text_artifact, LLAMA_CPP)
    assert message.startswith(f"{tmp_path}/{MANIFEST_NAME}: /files/text names 2 artifacts")
    assert '"text/b.gguf", "text/a.gguf"' in message


@pytest.mark.parametrize("named", [[1], [1, 2, 3], [3, 1, 2]])
def test_a_set_is_one_entry_or_one_per_part(tmp_path: Path, named: list[int]) -> None:
    make(tmp_path, *parts(3))
    write_manifest(tmp_path, *(entry(path, ctx=512) for path in parts(3, *named)))
    assert artifact(tmp_path, LLAMA_CPP) == parts(3, 1)[0]
    assert open_bundle(tmp_path).text_artifact(LLAMA_CPP).context_size == 512


def test_a_part_that_is_missing(tmp_path: Path) -> None:
    make(tmp_path, *parts(3, 1, 3))
    write_manifest(tmp_path, *(entry(path) for path in parts(3)))
    message = error_of(open_bundle(tmp_path).text_artifact, LLAMA_CPP)
    assert message.startswith(f"{tmp_path}/{MANIFEST_NAME}: /files/text/0/path: ")
    assert f'missing: "{parts(3, 2)[0]}"' in message


# The directory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "problem"),
    [("", "No such file"), ("absent", "No such file"), ("file", "is a file"), ("file/below", "Not a directory")],
)
def test_not_a_directory(tmp_path: Path, path: str, problem: str) -> None:
    make(tmp_path, "file")
    bundle = f"{tmp_path}/{path}" if path else ""
    message = error_of(open_bundle, bundle)
    assert json.dumps(bundle) in message
    assert problem in message
    assert "text/" in message
