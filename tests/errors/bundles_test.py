"""Bundles that are not there, not complete or not what they say."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.errors.expect import error
from tests.models.gguf_writer import STRING, U32, GgufWriter
from tests.support import abi, models
from tests.support.isolated import isolated

CYCLE = "tiny_llama_cycle"


def _bundle(folder: Path, **files: bytes) -> Path:
    """A bundle directory with these files in text/, `_` standing for the dot."""
    (folder / "text").mkdir(parents=True)
    for name, data in files.items():
        (folder / "text" / name.replace("_", ".")).write_bytes(data)
    return folder


def _refused(bundle: Path | str, *fragments: str) -> None:
    """Expects create, or else both tokenize and open on what it returned, to refuse the bundle."""
    try:
        context = abi.Context(bundle)
    except abi.Error:
        with error(abi.BUNDLE_INVALID, *fragments):
            abi.Context(bundle)
        return
    with context:
        with error(abi.BUNDLE_INVALID, *fragments):
            context.tokenize("abc")
        with error(abi.BUNDLE_INVALID, *fragments):
            context.open()
        # And the same once more: a failure leaves nothing behind.
        with error(abi.BUNDLE_INVALID, *fragments):
            context.open()


@pytest.fixture(scope="module")
def good() -> bytes:
    return models.text_model(CYCLE).read_bytes()


@isolated
def test_missing(tmp_path):
    path = tmp_path / "no-such-bundle"
    with error(abi.BUNDLE_INVALID, str(path)):
        abi.Context(path)


@isolated
def test_a_file(tmp_path):
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"PK")
    with error(abi.BUNDLE_INVALID, str(path), "director"):
        abi.Context(path)


@isolated
def test_a_model_file_instead_of_its_bundle():
    path = models.text_model(CYCLE)
    with error(abi.BUNDLE_INVALID, str(path), "director"):
        abi.Context(path)


@isolated
def test_odd_paths(tmp_path):
    with error(abi.INVALID_ARG, "bundle_dir"):
        abi.Context("")
    with error(abi.INVALID_ARG, "bundle_dir"):
        abi.load().call("create", None)
    with error(abi.BUNDLE_INVALID):
        abi.Context(f"{tmp_path}/{'x' * 100_000}")
    # Not UTF-8, and neither is it a reason for the message not to be.
    with error(abi.BUNDLE_INVALID, "\ufffd"):
        abi.load().call("create", os.fsencode(tmp_path) + b"/\xff\xfe\xc3")
    with error(abi.BUNDLE_INVALID):
        abi.Context(f"{tmp_path}/line\nbreak")


@isolated
def test_empty(tmp_path):
    _refused(tmp_path, str(tmp_path), "text/", "gguf")


@isolated
def test_nothing_in_text(tmp_path):
    _refused(_bundle(tmp_path / "bundle"), str(tmp_path / "bundle"), "gguf")


@isolated
def test_text_is_a_file(tmp_path):
    (tmp_path / "text").write_bytes(b"")
    _refused(tmp_path, str(tmp_path), "text")


@isolated
def test_other_files_only(tmp_path):
    _refused(_bundle(tmp_path / "bundle", model_bin=b"x", notes_txt=b"x"), "gguf")


@isolated
def test_names_that_a_terminal_would_act_on(tmp_path):
    bundle = _bundle(tmp_path / "bundle")
    (bundle / "text" / "\x1b[2J.bin").write_bytes(b"x")
    _refused(bundle, "holds \\x1b[2J.bin")


@isolated
def test_two_models(tmp_path, good):
    _refused(_bundle(tmp_path / "bundle", first_gguf=good, second_gguf=good), "first.gguf", "second.gguf")


@isolated
def test_a_dangling_link(tmp_path):
    bundle = _bundle(tmp_path / "bundle")
    (bundle / "text" / "model.gguf").symlink_to(tmp_path / "gone.gguf")
    _refused(bundle, "model.gguf")


@isolated
def test_a_directory_named_as_a_model(tmp_path):
    bundle = _bundle(tmp_path / "bundle")
    (bundle / "text" / "model.gguf").mkdir()
    _refused(bundle, "model.gguf (a directory)")


@isolated
def test_a_manifest_that_is_not_json(tmp_path, good):
    bundle = _bundle(tmp_path / "bundle", model_gguf=good)
    (bundle / "eliza-1.manifest.json").write_text('{"id": ')
    _refused(bundle, "eliza-1.manifest.json")


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


# Files that are no models; the name says why.
MALFORMED = {
    "empty": b"",
    "one_byte": b"G",
    "text": b"<html><body>404 Not Found</body></html>" * 100,
    "zeros": bytes(100_000),
    "git_lfs_pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 100\n",
    "magic_only": b"GGUF",
    "version_0": b"GGUF" + struct.pack("<IQQ", 0, 0, 0),
    "version_99": b"GGUF" + struct.pack("<IQQ", 99, 0, 0),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "no_keys": b"GGUF" + struct.pack("<IQQ", 3, 0, 0),
    "tensors_without_end": b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0),
    "keys_without_end": b"GGUF" + struct.pack("<IQQ", 3, 0, 2**62),
    "key_longer_than_the_file": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63) + b"general.architecture",
    "value_of_no_type": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + _string("x") + struct.pack("<I", 77),
    "array_longer_than_the_file": b"GGUF"
    + struct.pack("<IQQ", 3, 0, 1)
    + _string("x")
    + struct.pack("<IIQ", 9, 4, 2**61),
    "array_of_arrays_without_end": b"GGUF"
    + struct.pack("<IQQ", 3, 0, 1)
    + _string("x")
    + struct.pack("<I", 9)
    + struct.pack("<IQ", 9, 1) * 10_000,
}


@pytest.mark.parametrize("name", MALFORMED)
@isolated
def test_malformed(tmp_path, name):
    _refused(_bundle(tmp_path / "bundle", model_gguf=MALFORMED[name]), "model.gguf")


@isolated
def test_truncated(tmp_path, good):
    # In the header, in the keys, in the tensor table, and in the last tensor's data.
    for size in [*range(5, 60, 5), 1_000, 5_000, 10_000, 15_000, len(good) // 2, len(good) - 1]:
        _refused(_bundle(tmp_path / str(size), model_gguf=good[:size]), "model.gguf")


@isolated
def test_unknown_architecture(tmp_path):
    file = GgufWriter("no-such-architecture")
    file.add("general.name", STRING, "x")
    file.add(".block_count", U32, 1)
    file.add_tensor("token_embd.weight", (4, 32))
    file.write(tmp_path / "text" / "model.gguf")
    _refused(tmp_path, "no-such-architecture")


@isolated
def test_repaired(tmp_path, good):
    # Nothing of a failure is remembered: the same context serves once the file is right.
    bundle = _bundle(tmp_path / "bundle", model_gguf=good[:1000])
    with abi.Context(bundle) as context:
        with error(abi.BUNDLE_INVALID, "model.gguf"):
            context.open()
        with error(abi.BUNDLE_INVALID, "model.gguf"):
            context.tokenize("abc")
        (bundle / "text" / "model.gguf").write_bytes(good)
        with context.open(max_tokens=3) as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == "def"
