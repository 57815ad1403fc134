"""`eliza bundle create`, `verify` and `inspect`, and headers that lie."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import elizainference as eliza
import pytest
from elizainference.cli import _bundle_inspect, _headers, _litertlm, main
from hypothesis import given
from hypothesis import strategies as st

from tests.support import models

MODEL = models.text_model("tiny_gemma4_mtp")
DRAFTER = models.drafter("tiny_gemma4_mtp")


@pytest.fixture
def run(capfd):
    """Runs the command; its exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def bundle(run, tmp_path):
    folder = tmp_path / "made"
    created = run("bundle", "create", folder, "--model", MODEL, "--drafter", DRAFTER, "--context-size", "256")
    assert created[0] == 0, created
    return folder


def safetensors(path: Path, header: bytes, data: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def test_what_is_made_can_be_used(bundle, run):
    assert sorted(path.name for path in bundle.parent.iterdir()) == ["made"]
    with eliza.Engine(bundle, raw=True, max_tokens=9, drafter="mtp/drafter-tiny_gemma4_mtp.gguf") as engine:
        answer = engine.generate("abc")
    assert answer.text == models.alphabet("abc", 9) and answer.stats.drafted_tokens > 0
    assert answer.stats.kv_capacity == 256
    assert run("bundle", "verify", bundle)[:2] == (
        0,
        "ok  text/tiny_gemma4_mtp.gguf\nok  mtp/drafter-tiny_gemma4_mtp.gguf\n",
    )


@pytest.mark.parametrize("context_size", ["0", "-5", str(2**31)])
def test_a_context_size_that_no_manifest_may_have(run, tmp_path, context_size):
    arguments = ("bundle", "create", tmp_path / "made", "--model", MODEL, "--context-size", context_size)
    assert run(*arguments)[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_linked(run, tmp_path):
    folder = tmp_path / "linked"
    assert run("bundle", "create", folder, "--model", MODEL, "--link", "--id", "mine")[0] == 0
    assert (folder / "text" / MODEL.name).is_symlink()
    manifest = json.loads((folder / "eliza-1.manifest.json").read_text())
    assert manifest["id"] == "mine" and manifest["files"]["text"][0]["runtimeClass"] == "llama-cpp"


def test_an_mlx_folder_is_one_model(run, tmp_path):
    model = tmp_path / "mlx"
    model.mkdir()
    (model / "config.json").write_text("{}")
    safetensors(model / "model.safetensors", b"{}")
    folder = tmp_path / "bundle"
    assert run("bundle", "create", folder, "--model", model)[0] == 0
    (entry,) = json.loads((folder / "eliza-1.manifest.json").read_text())["files"]["text"]
    assert (entry["path"], entry["runtimeClass"]) == ("text/mlx", "mlx")
    # As the documents say that it is computed.
    command = "find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum"
    assert subprocess.check_output(command, shell=True, text=True, cwd=model).split()[0] == entry["sha256"]
    assert run("bundle", "verify", folder)[0] == 0
    (folder / "text" / "mlx" / "config.json").write_text("{ }")
    assert run("bundle", "verify", folder)[0] == 1


def test_not_made(run, tmp_path, bundle):
    other = tmp_path / "other.bin"
    other.write_bytes(b"x" * 100)
    for arguments, fragment in [
        ((bundle, "--model", MODEL), "exists"),
        ((tmp_path / "new", "--model", other), "no model that a bundle can hold"),
        ((tmp_path / "new", "--model", MODEL, "--model", MODEL), "rename one"),
        ((tmp_path / "new", "--model", MODEL, "--drafter", other), "no GGUF file"),
    ]:
        code, out, err = run("bundle", "create", *arguments)
        assert (code, out) == (1, "") and fragment in err
    # Nothing half made is left.
    assert {path.name for path in tmp_path.iterdir()} == {"made", "other.bin"}
    assert run("bundle", "create", tmp_path / "new")[0] == 2


def test_verify_finds_what_is_wrong(bundle, run):
    text, drafter = bundle / "text" / MODEL.name, next((bundle / "mtp").iterdir())
    data = bytearray(text.read_bytes())
    data[-1] ^= 1
    text.write_bytes(data)
    drafter.unlink()
    code, out, err = run("bundle", "verify", bundle, "--json")
    assert code == 1 and "2 of 2 files" in err
    report = json.loads(out)
    assert not report["ok"] and set(report["files"].values()) == {"differs", "missing"}
    (bundle / "eliza-1.manifest.json").write_text('{"files": {"text": [{"path": "../x"}]}}')
    assert "inside the bundle" in run("bundle", "verify", bundle)[2]
    (bundle / "eliza-1.manifest.json").unlink()
    assert "eliza bundle create" in run("bundle", "verify", bundle)[2]


def test_inspect(bundle, run):
    code, out, _ = run("bundle", "inspect", bundle, "--json")
    headers = json.loads(out)
    assert code == 0 and len(headers) == 2
    header = headers[str(bundle / "text" / MODEL.name)]
    with eliza.Engine(bundle) as engine:
        assert header["metadata"]["general.architecture"] == engine.metadata("general.architecture")
    assert header["bytes"] == MODEL.stat().st_size and header["tensors"] == sum(header["types"].values())
    assert "general.architecture: " in run("bundle", "inspect", MODEL)[1]


def test_inspect_safetensors(tmp_path, run):
    tensor = '{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}'
    header = f'{{"__metadata__": {{"format": "mlx"}}, "w": {tensor}}}'.encode()
    path = safetensors(tmp_path / "m.safetensors", header, bytes(24))
    assert _headers.safetensors(path)["parameters"] == 6
    assert "format: mlx" in run("bundle", "inspect", path)[1]
    outside = safetensors(tmp_path / "short.safetensors", header, bytes(23))
    code, out, err = run("bundle", "inspect", outside)
    assert code == 1 and "outside the file" in out and "cannot be read" in err


def test_what_is_no_file(bundle, run, tmp_path):
    """A pipe would be waited for, and a link that leads back followed for ever."""
    pipe = bundle / "text" / "pipe.gguf"
    os.mkfifo(pipe)
    for name in ("one", "two"):
        (bundle / "text" / name).symlink_to(bundle / "text")
    (bundle / "text" / "gone.gguf").symlink_to(tmp_path / "gone")
    code, out, err = run("bundle", "inspect", bundle, "--json")
    headers = json.loads(out)
    assert code == 1 and "2 of 4 files" in err
    assert "no regular file" in headers[str(pipe)]["error"]
    manifest = bundle / "eliza-1.manifest.json"
    manifest.write_text(json.dumps({"files": {"text": [{"path": "text/pipe.gguf", "sha256": "0" * 64}]}}))
    code, out, _ = run("bundle", "verify", bundle)
    assert (code, out) == (1, "no file  text/pipe.gguf\n")
    manifest.unlink()
    os.mkfifo(manifest)
    assert "no regular file" in run("bundle", "verify", bundle)[2]
    for nothing in (tmp_path / "none", MODEL):
        assert "give the directory that holds" in run("bundle", "verify", nothing)[2]


@pytest.mark.parametrize(
    "header",
    [
        b'{"__metadata__": 5}',
        b'{"w": {"dtype": [], "shape": [1], "data_offsets": [0, 0]}, "v": 1}',
        b'{"w": {"dtype": "F32", "shape": [' + b"9" * 4000 + b', 2], "data_offsets": [0, 0]}}',
        b'{"w": {"dtype": "F32", "shape": [1, 1, 1, 1, 1, 1, 1, 1, 1], "data_offsets": [0, 0]}}',
        b'{"w": {"dtype": "F32", "shape": "12", "data_offsets": [0, "x"]}}',
        b"[" * 100_000,
    ],
)
def test_safetensors_that_lie(tmp_path, run, header):
    code, out, err = run("bundle", "inspect", safetensors(tmp_path / "m.safetensors", header))
    assert code == 1 and "m.safetensors" in out and "cannot be read" in err


def test_a_litertlm_whose_parts_are_all_one():
    """A vector of a thousand sections, each of them the same one with as many pairs, would be a million."""
    table = struct.pack("<HHHH", 6, 8, 4, 0)  # a vtable of one field
    count = 1000
    # Position 0: the root's offset. 4: vtable. 12: the table, whose only field is a vector of itself.
    data = struct.pack("<I", 12) + table + struct.pack("<iI", 8, 4) + struct.pack("<I", count)
    data += b"".join(struct.pack("<i", 12 - (len(data) + 4 * at)) for at in range(count))
    buffer = _litertlm._Buffer(data, "it")
    assert len(buffer.tables(12, 0)) == count
    with pytest.raises(eliza.BundleError, match="items or more"):
        for _ in range(5):
            buffer.tables(12, 0)


def test_a_download_that_broke_off(tmp_path, run):
    (tmp_path / "half.gguf").write_bytes(MODEL.read_bytes()[: MODEL.stat().st_size // 2])
    code, out, _ = run("bundle", "inspect", tmp_path / "half.gguf")
    assert code == 1 and "beyond the file's end, at byte" in out and "download it again" in out


def test_a_folder_that_is_no_bundle(tmp_path, run, monkeypatch):
    monkeypatch.setattr(_bundle_inspect, "_MOST_ENTRIES", 2)
    for name in ("a.gguf", "b", "c"):
        (tmp_path / name).write_text("")
    code, out, err = run("bundle", "inspect", tmp_path)
    assert (code, out) == (1, "") and "more than 2 files; give a bundle" in err


def test_nothing_to_inspect(tmp_path, run):
    assert "holds no model" in run("bundle", "inspect", tmp_path)[2]
    assert "does not exist" in run("bundle", "inspect", tmp_path / "gone")[2]


READERS = {"gguf": _headers.gguf, "safetensors": _headers.safetensors, "litertlm": _litertlm.litertlm}


def _damaged(reader: str, data: bytes) -> None:
    """Reads it: an answer, or an error in words, and neither a crash nor memory for what it only claims."""
    path = Path(os.environ["TEST_TMPDIR"]) / f"damaged-{os.getpid()}"
    path.write_bytes(data)
    try:
        READERS[reader](path)
    except eliza.BundleError as error:
        assert str(path) in str(error)


@given(st.integers(0, 2000), st.integers(0, 255))
def test_a_gguf_that_is_damaged_anywhere(at, value):
    data = bytearray(MODEL.read_bytes()[:4000])
    data[at] = value
    _damaged("gguf", bytes(data))


@given(st.binary(max_size=200))
def test_garbage(data):
    _damaged("gguf", b"GGUF\x03\x00\x00\x00" + data)
    _damaged("safetensors", struct.pack("<Q", len(data)) + data)
    _damaged("litertlm", b"LITERTLM" + struct.pack("<IIIIQ", 1, 7, 0, 0, 32 + len(data)) + data)


@pytest.mark.parametrize("claim", [2**63, 2**40, 10**6])
def test_claims(tmp_path, claim):
    for reader, data in {
        "gguf": b"GGUF\x03\x00\x00\x00" + struct.pack("<QQ", claim, claim),
        "safetensors": struct.pack("<Q", claim) + b"{}",
        "litertlm": b"LITERTLM" + struct.pack("<IIIIQ", 1, 7, 0, 0, claim),
    }.items():
        path = tmp_path / "claims"
        path.write_bytes(data)
        with pytest.raises(eliza.BundleError, match="claims"):
            READERS[reader](path)
