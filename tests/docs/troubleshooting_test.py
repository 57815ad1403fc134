"""docs/troubleshooting.md and the library say the same: a message that the document quotes is produced here, and what
is produced here is in the document."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_float, c_int, create_string_buffer
from pathlib import Path
from typing import IO

import elizainference as eliza
import pytest
from elizainference._template import Template
from elizainference.cli import _headers, _index

from tests.docs import quoted
from tests.models import litertlm_writer, make_tiny_gguf, make_tiny_mlx, vocabulary
from tests.models.gguf_writer import STRING, U32, GgufWriter
from tests.support import abi, models
from tests.support.runfile import runfile

CYCLE = "tiny_llama_cycle"
LITERT_FAKES = ["fake", "fake_newer", "fake_older", "fake_incomplete"]
LITERTLM = models.bundle("tiny_gemma3_litertlm") / "text" / "tiny_gemma3.litertlm"
DOCUMENT = runfile("docs/troubleshooting.md").read_text()


def _error(call: Callable, *arguments, **options) -> str:
    """The message that a call fails with."""
    with pytest.raises((abi.Error, eliza.ElizaError)) as caught:
        call(*arguments, **options)
    error = caught.value
    message = error.message if isinstance(error, abi.Error) else str(error)
    assert message is not None
    return message


def _eliza(
    *arguments: str | Path, stdin: int = subprocess.DEVNULL, stdout: int | IO = subprocess.PIPE, **variables: str
) -> str:
    """What the `eliza` command says when it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ELIZA_", "PYTHON"))}
    done = subprocess.run(
        [runfile("python/eliza"), *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**kept, "LC_ALL": "C.UTF-8", "COLUMNS": "300", **variables},
        timeout=240,
        check=False,
    )
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def _bundle(folder: Path, manifest: str = "", **files: bytes) -> Path:
    """A bundle with these files in text/, `_` standing for the dot."""
    (folder / "text").mkdir(parents=True)
    for name, data in files.items():
        (folder / "text" / name.replace("_", ".")).write_bytes(data)
    if manifest:
        (folder / "eliza-1.manifest.json").write_text(manifest)
    return folder


def _open_error(bundle: Path, **fields) -> str:
    with abi.Context(bundle) as context:
        return _error(context.open, **fields)


def _embed(context: abi.Context, pooling: int = 1) -> None:
    """Asks for an embedding, with room for one float."""
    out, dimension = (c_float * 1)(), c_int()
    context.library.call("embed", context.handle, b"abc", 3, pooling, out, 1, byref(dimension))


# -- What goes wrong, by the document's sections ---------------------------------------------------


def loading_the_library(folder: Path, _) -> Iterator[str]:
    cycle = models.bundle(CYCLE)
    yield _eliza("backends", cycle, ELIZA_INFERENCE_LIBRARY=str(folder / "gone.so"))
    for name, source in {
        "other": "",
        "newer": 'const char* eliza_inference_abi_version(void) { return "16"; }',
        "partial": 'const char* eliza_inference_abi_version(void) { return "15"; }',
    }.items():
        (folder / f"{name}.c").write_text(source)
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", f"{folder}/{name}.c", "-o", f"{folder}/{name}.so"]
        subprocess.run(command, check=True)
        yield _eliza("backends", cycle, ELIZA_INFERENCE_LIBRARY=f"{folder}/{name}.so")
    options = ("--bundle", cycle, "--raw", "--context-size", "64", "abc")
    yield _eliza("generate", *options, ELIZA_INFERENCE_LIBRARY=str(runfile(os.environ["LIBRARY_12"])))


def the_bundle(folder: Path, _) -> Iterator[str]:
    good = models.text_model(CYCLE).read_bytes()
    yield _error(abi.Context, folder / "gone")
    yield _error(abi.Context, models.text_model(CYCLE))
    yield _error(abi.Context, "")
    yield _error(abi.load().call, "create", None)

    empty = _bundle(folder / "empty")
    yield _open_error(empty)
    with abi.Context(empty) as context:
        yield _error(context.tokenize, "abc")
        yield _error(_embed, context)
    yield _open_error(_bundle(folder / "other-files", notes_txt=b"x"))
    yield _open_error(_bundle(folder / "two", a_gguf=good, b_gguf=good))
    yield _open_error(_bundle(folder / "split", **{"m-00001-of-00003_gguf": good}))
    dangling = _bundle(folder / "dangling")
    (dangling / "text" / "m.gguf").symlink_to(folder / "gone.gguf")
    yield _open_error(dangling)
    circle = _bundle(folder / "circle")
    (circle / "text" / "m.gguf").symlink_to("m.gguf")
    yield _open_error(circle)

    yield _error(abi.Context, _bundle(folder / "no-json", manifest='{"id": '))
    yield _error(abi.Context, _bundle(folder / "no-files", manifest="{}"))
    yield _error(abi.Context, _bundle(folder / "odd-files", manifest='{"files": 1}'))
    entry = '{"files": {"text": [{"path": "text/m.gguf", "sha256": "%s"}]}}' % ("0" * 64)
    yield _open_error(_bundle(folder / "gone-file", manifest=entry))

    for name, data in {
        "nothing": b"",
        "page": b"<html>404 Not Found</html>",
        "part": good[: len(good) - 100],
        "old": b"GGUF\x01" + bytes(100),
        "big-endian": b"GGUF\x00\x00\x00\x03" + bytes(100),
        "many": b"GGUF\x03\x00\x00\x00" + b"\xff" * 16,
    }.items():
        yield _open_error(_bundle(folder / name, m_gguf=data))
    odd = GgufWriter("llama")
    odd.add(".block_count", U32, 2**31)
    odd.add_tensor("token_embd.weight", (4, 32))
    odd.write(folder / "odd" / "text" / "m.gguf")
    yield _open_error(folder / "odd")
    unknown = GgufWriter("no-such-architecture")
    unknown.add("general.name", STRING, "x")
    unknown.add_tensor("token_embd.weight", (4, 32))
    unknown.write(folder / "unknown" / "text" / "m.gguf")
    yield _open_error(folder / "unknown")
    # Rotates nothing, in layers that rotate: found by an assertion in the computation.
    still = make_tiny_gguf.make("gemma3", "walk", vocabulary.ALPHABET, True, 1, 256, 1)
    still.add(".rope.dimension_count_swa", U32, 0)
    still.write(folder / "still" / "text" / "m.gguf")
    with abi.Context(folder / "still") as context, context.open(max_tokens=1, context_size=64) as stream:
        yield _error(stream.prefill, [3])


def _mlx_bundle(folder: Path, files: dict[str, bytes], **config) -> Path:
    """A bundle with these files of an MLX model in text/, whose config.json has these values; None: not that key."""
    (folder / "text").mkdir(parents=True)
    values = {key: value for key, value in (json.loads(files["config.json"]) | config).items() if value is not None}
    for name, data in (files | {"config.json": json.dumps(values).encode()}).items():
        (folder / "text" / name).write_bytes(data)
    return folder


def mlx_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    good = make_tiny_mlx.make("gemma3_q4")
    weights = good["model.safetensors"]
    gates_on = abi.Library(runfile(os.environ["LIBRARY_GATES_ON"]))

    def open_error(bundle: Path, **fields) -> str:
        with abi.Context(bundle, gates_on) as context:
            return _error(context.open, **fields)

    sound = _mlx_bundle(folder / "sound", good)
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "mlx-coreml")
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "npu")
    yield open_error(sound)
    if sys.platform == "linux":
        monkeypatch.setenv("ELIZA_MLX_DEVICE", "auto")
        yield open_error(sound)
    monkeypatch.setenv("ELIZA_MLX_DEVICE", "cpu")
    yield open_error(sound, gbnf_grammar='root ::= "a"')
    yield open_error(sound, draft_max=4, mtp_drafter_path="x.gguf")

    for name, config in {
        "another-type": {"model_type": "qwen3"},
        "odd-value": {"hidden_size": -1},
        "no-value": {"model_type": "llama", "rms_norm_eps": None},
        "other-shapes": {"vocab_size": 5},
        "other-packing": {"hidden_size": 192},
        "another-method": {"quantization_config": {"quant_method": "awq"}},
        "more-layers": {"num_hidden_layers": 5},
    }.items():
        yield open_error(_mlx_bundle(folder / name, good, **config))
    yield open_error(_mlx_bundle(folder / "other-vocabulary", make_tiny_mlx.make("llama_f32"), vocab_size=5))
    (sound / "text" / "config.json").write_text('{"model_type": ')
    yield open_error(sound)
    for name, data in {"page": b"<html>404 Not Found</html>", "nothing": b"", "part": weights[:-100]}.items():
        yield open_error(_mlx_bundle(folder / name, good | {"model.safetensors": data}))
    yield open_error(_mlx_bundle(folder / "copies", good | {"copy.safetensors": weights}))

    vocabulary = json.loads(good["tokenizer.json"])
    (_mlx_bundle(folder / "mute", good) / "text" / "tokenizer.json").unlink()
    yield open_error(folder / "mute")
    for name, changes in {"unigram": {"type": "Unigram"}, "other-merges": {"merges": [["no", "tokens"]]}}.items():
        changed = json.dumps(vocabulary | {"model": vocabulary["model"] | changes}).encode()
        yield open_error(_mlx_bundle(folder / name, good | {"tokenizer.json": changed}))
    (_mlx_bundle(folder / "gone", good) / "text" / "generation_config.json").symlink_to("gone")
    yield open_error(folder / "gone")
    settings = {"tokenizer_config.json": b'{"add_eos_token": true, "eos_token": "none"}'}
    yield open_error(_mlx_bundle(folder / "other-settings", good | settings))


def choosing_the_backend(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    both = _bundle(folder / "both", m_gguf=models.text_model(CYCLE).read_bytes(), m_litertlm=LITERTLM.read_bytes())
    gates_on = abi.Library(runfile(os.environ["LIBRARY_GATES_ON"]))
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "lama.cpp")
    yield _open_error(both)
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "LiteRT-LM")
    yield _open_error(both)
    for bundle in (both, models.bundle(CYCLE)):
        with abi.Context(bundle, gates_on) as context:
            yield _error(context.open)
    with eliza.Engine(both) as engine, pytest.raises(eliza.BackendUnavailable) as caught:
        engine.generate("abc")
    yield str(caught.value)


def opening_a_stream(_, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with abi.Context(models.bundle(CYCLE)) as context:
        for fields in (
            {"temperature": -1.0},
            {"max_tokens": -1},
            {"draft_min": 3, "draft_max": 2},
            {"draft_max": 4, "mtp_drafter_path": "mtp/gone.gguf"},
            {"draft_max": 4, "mtp_drafter_path": str(models.drafter("tiny_gemma4_mtp"))},
            {"draft_max": 10_000, "mtp_drafter_path": "mtp/gone.gguf"},
            {"cache_type_k": "q99"},
            {"cache_type_v": "q99"},
            {"gbnf_grammar": 'root ::= "a" ('},
            {"gbnf_grammar": "root ::= " + "(" * 1000 + '"a"' + ")" * 1000},
            {"context_size": 2**31 - 1},
        ):
            yield _error(context.open, **fields)
        yield _error(context.library.call, "llm_stream_open", context.handle, None)
        for variable, value in {"ELIZA_THREADS": "all", "ELIZA_CONTEXT_SIZE": "4k"}.items():
            with monkeypatch.context() as scope:
                scope.setenv(variable, value)
                yield _error(context.open)
        handle = context.handle
    yield _error(abi.load().call, "llm_stream_open", handle, byref(abi.config()))
    yield _error(abi.load().call, "llm_stream_open", None, byref(abi.config()))


def litert_lm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With a library that only looks like LiteRT-LM: it fails as it is told."""
    library = abi.Library(runfile(os.environ["LIBRARY_LITERT"]))
    bundle = _bundle(folder / "model", m_litertlm=LITERTLM.read_bytes())
    fake_path = {name: str(runfile(f"tests/litert_lm/lib{name}.so")) for name in LITERT_FAKES}
    silent_decode, endless_decode, failing_decode, _, failing_prefill = range(1, 6)

    def open_error(bundle: Path, **fields) -> str:
        with abi.Context(bundle, library) as context:
            return _error(context.open, **fields)

    monkeypatch.setenv("ELIZA_LLM_BACKEND", "litert-lm")
    monkeypatch.setenv("ELIZA_LITERT_TIMEOUT", "3")
    for path in ("/nowhere/liblitert-lm.so", *(fake_path[name] for name in LITERT_FAKES[1:])):
        monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", path)
        yield open_error(bundle)
    monkeypatch.setenv("ELIZA_LITERT_LM_LIBRARY", fake_path["fake"])
    for accelerator in ("auto", "npu", "tpu", "cpu"):
        monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", accelerator)
        if accelerator != "cpu":
            yield open_error(bundle)
    for name, data in {
        "page": b"<html>404 Not Found</html>",
        "part": LITERTLM.read_bytes()[:-100_000],
        "old": b"LITERTLM" + bytes(100),
        "long": b"LITERTLM\1\0\0\0" + b"\xff" * 100,
        "damaged": b"LITERTLM\1\0\0\0" + bytes(12) + b"\0\1\0\0\0\0\0\0" + b"\xff" * 300,
        "other": b"LITERTLM\1\0\0\0" + bytes(12) + b"\0\1\0\0\0\0\0\0" + bytes(300),
    }.items():
        yield open_error(_bundle(folder / name, m_litertlm=data))
    for_the_gpu = litertlm_writer.dumps((litertlm_writer.TF_LITE_MODEL, {"backend_constraint": "gpu"}))
    yield open_error(_bundle(folder / "gpu", m_litertlm=for_the_gpu))
    yield open_error(bundle, gbnf_grammar='root ::= "a"')
    yield open_error(bundle, draft_max=4, mtp_drafter_path="mtp/drafter.gguf")
    with monkeypatch.context() as scope:
        scope.setenv("ELIZA_LITERT_TIMEOUT", "soon")
        yield open_error(bundle)

    behave = ctypes.CDLL(fake_path["fake"]).fake_behave
    with abi.Context(bundle, library) as context, context.open() as stream, context.open() as other:
        behave(failing_prefill)
        yield _error(stream.prefill, context.tokenize("abc"))
        behave(silent_decode)
        stream.prefill(context.tokenize("abc"))
        yield _error(stream.prefill, context.tokenize("abc"))
        yield _error(stream.next)
        behave(failing_decode)
        stream.reset()
        stream.prefill(context.tokenize("abc"))
        stream.next()
        yield _error(stream.next)
        behave(endless_decode)
        stream.reset()
        stream.prefill(context.tokenize("abc"))
        stream.next()
        yield _error(other.prefill, context.tokenize("abc"))
        yield _error(_embed, context)
        numbers = [c_float(), c_int(), c_float()]
        tokens = (c_int * 1)(97)
        yield _error(library.call, "llm_eot_score", context.handle, tokens, 1, 1, *map(byref, numbers))


def prompts_and_tokens(folder: Path, _) -> Iterator[str]:
    library, text = abi.load(), create_string_buffer(1)
    with abi.Context(models.bundle(CYCLE)) as context, context.open(context_size=256) as stream:
        yield _error(stream.next)
        yield _error(stream.prefill, context.tokenize("a" * 1000))
        yield _error(stream.prefill, [2**31 - 1])
        yield _error(stream.prefill, [])
        yield _error(library.call, "llm_stream_prefill", stream.handle, None, 1)
        stream.prefill(context.tokenize("abc"))
        yield _error(stream.next, text_cap=1)
        yield _error(stream.next, tokens_cap=0)
        yield _error(stream.next, text_cap=0)
        stream.cancel()
        yield _error(stream.next)
        stream.reset()

        slot = folder / "slot"
        stream.prefill(context.tokenize("abc"))
        library.call("llm_stream_save_slot", stream.handle, os.fsencode(slot))
        yield _error(library.call, "llm_stream_save_slot", stream.handle, os.fsencode(folder / "no" / "folder"))
        data = slot.read_bytes()
        for name, other in {
            "page": b"<html>404 Not Found</html>" * 10,
            "part": data[:-1],
            "damaged": data[:-1] + bytes([data[-1] ^ 1]),
        }.items():
            (folder / name).write_bytes(other)
            yield _error(library.call, "llm_stream_restore_slot", stream.handle, os.fsencode(folder / name))
        yield _error(library.call, "llm_stream_restore_slot", stream.handle, os.fsencode(folder / "gone"))
        with context.open(cache_type_k="q8_0") as other_types:
            yield _error(library.call, "llm_stream_restore_slot", other_types.handle, os.fsencode(slot))
        with abi.Context(models.bundle("tiny_llama_random")) as other, other.open() as other_model:
            yield _error(library.call, "llm_stream_restore_slot", other_model.handle, os.fsencode(slot))

        yield _error(_embed, context)
        yield _error(_embed, context, pooling=9)
        tokens = (c_int * 3)(*context.tokenize("abc", add_special=False))
        yield _error(library.call, "detokenize", context.handle, tokens, 3, 0, 0, text, 1)
        yield _error(library.call_for_string, "model_meta", context.handle, b"no.such.key")
        for schema in (b"{", b'{"type": "number", "minimum": 1}'):
            yield _error(library.call_for_string, "json_schema_to_gbnf", schema)
        yield _error(library.call, "vad_open", context.handle, 16000)
        yield _error(library.call, "kokoro_load", context.handle, b"a.gguf", b"voice", 1)


def python_and_eliza(folder: Path, _) -> Iterator[str]:
    cycle = models.bundle(CYCLE)
    with eliza.Engine(cycle) as engine:
        for options in (
            {"max_token": 5},
            {"max_tokens": -1},
            {"max_tokens": "5"},
            {"temperature": float("nan")},
            {"grammar": 5},
            {"json_schema": 5},
        ):
            yield _error(engine.generate, "abc", **options)
        yield _error(engine.generate, "\ud800")
    yield _error(engine.generate, "abc")

    key = b"tokenizer.chat_template"
    without_template = models.text_model(CYCLE).read_bytes().replace(key, key.upper())
    with eliza.Engine(_bundle(folder / "base", m_gguf=without_template)) as engine:
        yield _error(engine.generate, [{"role": "user", "content": "abc"}])
    with eliza.Engine(cycle) as engine:
        yield _error(engine.generate, [])
        yield _error(engine.generate, [{"role": "user"}])
        yield _error(engine.generate, [{"role": "</s>", "content": "abc"}])
        (folder / "page").write_bytes(b"<html>404 Not Found</html>")
        with engine.chat([{"role": "user", "content": "a" * (33 << 20)}]) as chat:
            yield _error(chat.restore, folder / "page")
            yield _error(chat.save, folder / "chat")
    yield _error(Template, "{% if")
    yield _error(Template("{{ raise_exception('roles must alternate') }}").render, [], "", "", False)

    yield _eliza("generate", "--bundle", cycle, "--raw", "--system", "x", "abc")
    terminal, other_end = pty.openpty()
    yield _eliza("generate", "--bundle", cycle, stdin=other_end)
    for end in (terminal, other_end):
        os.close(end)
    with open(folder / "write-only", "w") as file:
        yield _eliza("generate", "--bundle", cycle, stdin=file.fileno())
    with open("/dev/full", "w") as full:
        yield _eliza("tokenize", "--bundle", cycle, "abc", stdout=full)

    with eliza.Engine(cycle) as engine:
        yield _error(engine.detokenize, ["a"])
    yield _error(eliza.Engine, "")
    yield _error(eliza.Engine, models.text_model(CYCLE))
    (folder / "nothing").mkdir()
    for arguments in (
        ("chat", ""),
        ("backends", "smollm2-135m"),
        ("bundle", "verify", cycle),
        ("bundle", "create", cycle, "--model", models.text_model(CYCLE)),
        ("bundle", "create", folder / "new", "--model", folder / "write-only"),
        ("bundle", "fetch", "smollm2-135m"),
        ("bundle", "fetch", "smollm2-135m", "--to", folder),
        ("bundle", "inspect", folder / "nothing"),
        ("bench",),
        ("bench", "--compare", models.text_model(CYCLE), folder / "write-only"),
    ):
        yield _eliza(*arguments, PIP_INDEX_URL="file:///nowhere", PIP_EXTRA_INDEX_URL="", XDG_DATA_HOME=str(folder))
    create = [runfile("python/eliza"), "bundle", "create", folder / "changed", "--model", models.text_model(CYCLE)]
    subprocess.run(create, check=True, capture_output=True)
    (model,) = (folder / "changed/text").iterdir()
    model.unlink()
    model.write_bytes(b"another one")
    yield _eliza("bundle", "verify", folder / "changed")
    (folder / "lines").write_text("/nope\n")
    with open(folder / "lines") as lines:
        yield _eliza("chat", cycle, stdin=lines.fileno())
    yield _error(_index.download, "file:///nowhere", folder / "wheel", "0" * 64, 10)
    yield _error(_headers.gguf, folder / "lines")


PRODUCERS = {
    "Loading the library": loading_the_library,
    "The bundle": the_bundle,
    "MLX models": mlx_models,
    "Choosing the backend": choosing_the_backend,
    "Opening a stream": opening_a_stream,
    "LiteRT-LM": litert_lm,
    "Prompts and tokens": prompts_and_tokens,
    "Python and `eliza`": python_and_eliza,
}


@pytest.mark.parametrize("section", PRODUCERS)
def test_messages(section, tmp_path, monkeypatch):
    expected = set(quoted.messages(DOCUMENT)[section]) - quoted.NOT_PRODUCED - quoted.FOREIGN
    produced = list(PRODUCERS[section](tmp_path, monkeypatch))
    undocumented = [text for text in produced if not any(quoted.says(text, message) for message in expected)]
    assert not undocumented, "not in the document:\n" + "\n".join(undocumented)
    invented = [message for message in expected if not any(quoted.says(text, message) for text in produced)]
    assert not invented, "not what the library says:\n" + "\n".join(invented + ["It said:"] + produced)


def test_every_section_is_tested():
    assert set(quoted.messages(DOCUMENT)) == {quoted.BUILDING, *PRODUCERS}
