"""What a gate adds to the library, and that nothing of it is there while the gate is off."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import abi, models
from tests.support.isolated import isolated
from tests.support.runfile import runfile

SUFFIX = "dylib" if sys.platform == "darwin" else "so"
DEFAULT = runfile(f"libelizainference.{SUFFIX}")
GATES_ON = runfile(f"elizainference_gates_on/libelizainference.{SUFFIX}")

LITERTLM = models.bundle("tiny_gemma3_litertlm") / "text" / "tiny_gemma3.litertlm"

# {name: what its code is called in a symbol}
BACKENDS = {"litert-lm": "eliza::litert_lm::", "mlx-coreml": "eliza::mlx::"}

needs_elf = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")


def symbols(path):
    """Every symbol in the file, demangled: defined or not, exported or not."""
    listing = subprocess.run(["nm", "--demangle", path], check=True, capture_output=True, text=True).stdout
    names = [line.split(maxsplit=1)[1] if line.startswith(" ") else line[17:] for line in listing.splitlines()]
    assert any("llm_backend_register_builtins" in name for name in names), "the file is stripped: nm sees too little"
    return names


def needed(path):
    """The libraries that the loader loads with this one."""
    dynamic = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))


def report(path, bundle):
    """The selection report of a library for a bundle, and its rows by name."""
    library = abi.Library(path)
    with abi.Context(bundle, library) as context:
        result = context.report()
    return result, {row["name"]: row for row in result["backends"]}


def open_error(path, bundle, backend):
    """The message with which `open` fails where ELIZA_LLM_BACKEND is `backend`."""
    os.environ["ELIZA_LLM_BACKEND"] = backend
    with abi.Context(bundle, abi.Library(path)) as context, pytest.raises(abi.Error) as caught:
        context.open()
    return caught.value.message


def generate(path, bundle):
    """Some greedy tokens."""
    with abi.Context(bundle, abi.Library(path)) as context, context.open(max_tokens=40) as stream:
        stream.prefill(context.tokenize("abc"))
        return [token for step in stream.steps() for token in step.tokens]


# -- The file -------------------------------------------------------------------------------------


@needs_elf
def test_default_library_holds_nothing_of_a_runtime():
    found = [name for name in symbols(DEFAULT) if re.search(r"litert_?lm|\bmlx::|tflite", name, re.I)]
    assert found == []
    contents = DEFAULT.read_bytes()
    # Its backends' names are in there, for the report and the error texts. Their libraries' are not.
    assert b"litert-lm" in contents
    assert b"liblitert" not in contents.lower()
    assert b"libmlx" not in contents


@needs_elf
def test_default_library_needs_only_the_systems():
    allowed = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1"}
    loaders = {name for name in needed(DEFAULT) if name.startswith("ld-linux")}
    assert needed(DEFAULT) - loaders <= allowed


@needs_elf
def test_a_gated_library_finds_libmlx_beside_itself():
    beside = {path.name for path in GATES_ON.parent.iterdir()}
    assert needed(GATES_ON) - needed(DEFAULT) <= beside
    assert "libmlx.so" in beside


@needs_elf
def test_a_gate_compiles_its_backend_in():
    names = symbols(GATES_ON)
    for code in BACKENDS.values():
        assert any(code in name for name in names)


# -- The report -----------------------------------------------------------------------------------


@isolated
def test_default_library_knows_what_it_lacks():
    result, rows = report(DEFAULT, models.bundle("tiny_llama_cycle"))
    assert [*rows] == ["llama.cpp", *BACKENDS]
    assert (result["chosen"], result["error"]) == ("llama.cpp", None)
    for name, flag in [("litert-lm", "--//platforms:enable_litert"), ("mlx-coreml", "--//platforms:enable_mlx")]:
        assert rows[name]["compiled"] is False
        assert flag in rows[name]["reason"]


@isolated
def test_backends_behind_gates_register_and_are_not_available_here():
    result, rows = report(GATES_ON, models.bundle("tiny_llama_cycle"))
    assert [*rows] == ["llama.cpp", *BACKENDS]
    assert (result["chosen"], result["error"]) == ("llama.cpp", None)
    for name in BACKENDS:
        row = rows[name]
        assert (row["compiled"], row["available"], row["can_serve"], row["chosen"]) == (True, False, False, False)
        assert row["reason"]


@isolated
def test_backends_behind_gates_recognise_their_models(tmp_path):
    text = tmp_path / "text"
    (text / "mlx-model").mkdir(parents=True)
    (text / "mlx-model" / "config.json").write_text('{"model_type": "llama"}')
    (text / "mlx-model" / "model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    (text / "model.litertlm").symlink_to(LITERTLM)
    result, rows = report(GATES_ON, tmp_path)
    assert [rows[name]["can_serve"] for name in ["llama.cpp", *BACKENDS]] == [False, True, True]
    assert "LiteRT-LM's library was looked for in vain" in rows["litert-lm"]["reason"]
    assert "there is no Metal device on this host" in rows["mlx-coreml"]["reason"]


@isolated
def test_reasons_name_what_is_wrong_with_a_model(tmp_path):
    text = tmp_path / "text"
    (text / "model.mlpackage").mkdir(parents=True)
    (text / "model.litertlm").write_bytes(b"not a model")
    _, rows = report(GATES_ON, tmp_path)
    assert [rows[name]["can_serve"] for name in BACKENDS] == [False, False]
    assert "model.litertlm is not a LiteRT-LM model" in rows["litert-lm"]["reason"]
    assert "model.mlpackage is a CoreML package" in rows["mlx-coreml"]["reason"]


@isolated
def test_two_models_are_a_reason_that_lists_them(tmp_path):
    (tmp_path / "text").mkdir()
    for name in ("a.litertlm", "b.litertlm"):
        (tmp_path / "text" / name).write_bytes(b"LITERTLM" + bytes(64))
    _, rows = report(GATES_ON, tmp_path)
    assert rows["litert-lm"]["can_serve"] is False
    assert "a.litertlm" in rows["litert-lm"]["reason"]
    assert "b.litertlm" in rows["litert-lm"]["reason"]
    assert "failed" not in rows["litert-lm"]["reason"]  # it is worded for users, no accident of the code


# -- Streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@isolated
def test_a_hard_select_of_what_is_not_compiled_in_fails_to_open(backend):
    message = open_error(DEFAULT, models.bundle("tiny_llama_cycle"), backend)
    assert f'ELIZA_LLM_BACKEND is "{backend}", but {backend} is not compiled into this build' in message
    assert "Valid names: llama.cpp." in message


@pytest.mark.parametrize("backend", BACKENDS)
@isolated
def test_a_hard_select_of_what_cannot_serve_fails_to_open(backend):
    message = open_error(GATES_ON, models.bundle("tiny_llama_cycle"), backend)
    assert f'ELIZA_LLM_BACKEND is "{backend}", but {backend} cannot serve' in message
    assert "Valid names: llama.cpp, litert-lm, mlx-coreml." in message


@isolated
def test_a_hard_select_of_what_is_not_available_fails_to_open(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "model.litertlm").symlink_to(LITERTLM)
    message = open_error(GATES_ON, tmp_path, "litert-lm")
    assert "litert-lm is not available: LiteRT-LM's library was looked for in vain" in message


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc/self/maps")
@pytest.mark.parametrize("path", [DEFAULT, GATES_ON], ids=["default", "gates_on"])
@isolated
def test_a_gguf_bundle_opens_no_other_runtimes_library(path):
    assert len(generate(path, models.bundle("tiny_llama_cycle"))) == 40
    mapped = {Path(line.rstrip().split(maxsplit=5)[5]).name for line in Path("/proc/self/maps").open() if "/" in line}
    assert any(name.startswith("libelizainference.") for name in mapped)
    # libmlx is linked: its loader has no choice. What it would compute with is not touched.
    runtimes = {name for name in mapped if re.search("litert|mlx|tflite|metal|cuda|vulkan|opencl", name, re.I)}
    assert runtimes == ({"libmlx.so"} if path == GATES_ON else set())


@isolated
def test_a_gguf_bundle_gives_the_same_tokens_whatever_the_gates():
    bundle = models.bundle("tiny_llama_cycle")
    tokens = generate(DEFAULT, bundle)
    assert len(tokens) == 40
    assert generate(GATES_ON, bundle) == tokens
