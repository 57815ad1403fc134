"""What the entry points do with a backend behind them: arguments and results pass unchanged, nothing else does."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int32, c_size_t, c_void_p

import pytest

from tests.ffi.fake import THROW_BAD_ALLOC, THROW_ERROR, THROW_INT, THROW_STD_EXCEPTION
from tests.support import abi


@pytest.fixture
def stream(context):
    with context.open() as stream:
        yield stream


class Memory:
    """Buffers to point to."""

    def __init__(self):
        self.tokens = (c_int32 * 3)(11, 22, 33)
        self.count = c_size_t(99)
        self.text = ctypes.create_string_buffer(b"stale text", 64)
        self.drafted, self.accepted = c_int32(77), c_int32(88)
        self.error = c_void_p()
        self.filename = c_char_p(b"some/file")

    def at(self, name: str) -> int:
        if name == "filename":
            return ctypes.cast(self.filename, c_void_p).value
        return ctypes.addressof(getattr(self, name))


def _calls(memory: Memory) -> dict[str, list[int]]:
    """The arguments of each stream function behind its handle, as numbers."""
    at = memory.at
    return {
        "prefill": [at("tokens"), 3, at("error")],
        "next": [at("tokens"), 3, at("count"), at("text"), 64, at("drafted"), at("accepted"), at("error")],
        "cancel": [],
        "save_slot": [at("filename"), at("error")],
        "restore_slot": [at("filename"), at("error")],
        "reset": [],
        "reset_keep": [2**31 - 1],
        "set_seed": [2**64 - 1],
    }


FUNCTIONS = list(_calls(Memory()))
# The functions that can say what went wrong.
SPEAKING = ["prefill", "next", "save_slot", "restore_slot"]


def test_every_stream_function_is_here():
    others = {"supported", "open", "close", "stats"}
    names = {name.removeprefix("llm_stream_") for name in abi.SIGNATURES if name.startswith("llm_stream_")}
    assert names - others == set(FUNCTIONS)


@pytest.mark.parametrize("status", [0, 1, 5, 2**31 - 1, -1, -7, -99])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_results_pass_unchanged(fake, stream, name, status):
    seen = []
    fake.script(**{name: lambda session, *arguments: seen.append(list(arguments)) or status})
    memory = Memory()
    arguments = _calls(memory)[name]
    assert fake.raw(f"llm_stream_{name}")(stream.handle, *arguments) == status
    assert seen == [arguments]
    assert list(memory.tokens) == [11, 22, 33]
    # A failure of a backend that says nothing is still not one without a message.
    message = fake.library.take_string(memory.error)
    if name in SPEAKING and status < 0:
        assert message == f"fake: {name} failed with status {status} and gave no reason"
    else:
        assert message is None


@pytest.mark.parametrize("name", SPEAKING)
def test_a_message_passes_unchanged(fake, stream, name):
    def fail(session, *arguments):
        fake.set_error(arguments[-1], b"the backend's own words")
        return -5

    fake.script(**{name: fail})
    memory = Memory()
    function = fake.raw(f"llm_stream_{name}")
    assert function(stream.handle, *_calls(memory)[name]) == -5
    assert fake.library.take_string(memory.error) == "the backend's own words"
    assert function(stream.handle, *_calls(memory)[name][:-1], None) == -5


@pytest.mark.parametrize(
    ("what", "status", "message"),
    [
        (THROW_ERROR, abi.BUNDLE_INVALID, "fake error"),
        (THROW_BAD_ALLOC, abi.OOM, "out of memory"),
        (THROW_STD_EXCEPTION, abi.FFI_FAULT, "fake exception"),
        (THROW_INT, abi.FFI_FAULT, "an exception that carries no message"),
    ],
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_exceptions_become_errors(fake, stream, name, what, status, message):
    fake.script(**{name: lambda session, *arguments: fake.throw(what) or 0})
    memory = Memory()
    function = fake.raw(f"llm_stream_{name}")
    assert function(stream.handle, *_calls(memory)[name]) == status
    assert fake.library.take_string(memory.error) == (message if name in SPEAKING else None)
    # The stream is not the worse for it.
    fake.script()
    assert function(stream.handle, *_calls(memory)[name]) >= 0


def test_next_leaves_nothing_of_a_former_call_behind(fake, stream):
    fake.script(next=lambda *_: -4)
    for handle, tokens_cap in [(stream.handle, 3), (stream.handle, 0), (None, 3), (stream.handle + 8, 3)]:
        memory = Memory()
        at = memory.at
        status = fake.raw("llm_stream_next")(
            handle, at("tokens"), tokens_cap, at("count"), at("text"), 64, at("drafted"), at("accepted"), None
        )
        assert status < 0
        assert (memory.count.value, memory.text.value) == (0, b"")
        assert (memory.drafted.value, memory.accepted.value) == (0, 0)


@pytest.mark.parametrize(("value", "looked_at"), [("", True), ("  ", True), ("fake", False)])
def test_the_report_looks_for_gpus_unless_another_backend_is_named(fake, context, monkeypatch, value, looked_at):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", value)
    report = context.report()
    assert report["chosen"] == "fake"
    assert (report["gpu"] is not None) == looked_at


def test_a_failing_next_takes_back_what_it_wrote(fake, stream):
    def write_and_fail(session, tokens, tokens_cap, count, text, text_cap, drafted, accepted, error):
        c_size_t.from_address(count).value = 2
        ctypes.memmove(text, b"ab", 3)
        c_int32.from_address(drafted).value = c_int32.from_address(accepted).value = 4
        return abi.CANCELLED

    fake.script(next=write_and_fail)
    memory = Memory()
    assert fake.raw("llm_stream_next")(stream.handle, *_calls(memory)["next"]) == abi.CANCELLED
    assert (memory.count.value, memory.text.value) == (0, b"")
    assert (memory.drafted.value, memory.accepted.value) == (0, 0)


def test_next_may_go_without_what_is_optional(fake, stream):
    seen = []
    fake.script(next=lambda session, *arguments: seen.append(arguments[-3:]) or 1)
    memory = Memory()
    arguments = _calls(memory)["next"][:-3]
    assert fake.raw("llm_stream_next")(stream.handle, *arguments, None, None, None) == 1
    assert seen == [(None, None, None)]


def test_open_passes_the_config_byte_for_byte(fake, context):
    config = abi.config(
        max_tokens=1, temperature=2.5, top_p=0.25, top_k=4, repeat_penalty=5.5, slot_id=6, prompt_cache_key="key",
        draft_min=7, draft_max=8, mtp_drafter_path="mtp/größe.gguf", gbnf_grammar='root ::= "x"', disable_thinking=9,
        n_gpu_layers=-1, cache_type_k="q8_0", cache_type_v="f16", context_size=10,
    )  # fmt: skip
    seen = []

    def note(context_handle, config_address, out_error):
        strings = ["prompt_cache_key", "mtp_drafter_path", "gbnf_grammar", "cache_type_k", "cache_type_v"]
        copy = abi.Config.from_address(config_address)
        seen.append((context_handle, ctypes.string_at(config_address, 88), [getattr(copy, name) for name in strings]))
        return 1

    fake.script(open=note)
    with abi.Stream(fake.library, fake.library.call("llm_stream_open", context.handle, byref(config))):
        assert seen == [
            (context.handle, bytes(config), [b"key", "mtp/größe.gguf".encode(), b'root ::= "x"', b"q8_0", b"f16"])
        ]


def test_close_deletes_once(fake, context):
    deleted = []
    fake.script(deleted=deleted.append)
    stream = context.open()
    handle = stream.handle
    assert fake.live_sessions() == 1
    stream.close()
    fake.library.llm_stream_close(handle)
    assert fake.live_sessions() == 0 and len(deleted) == 1


def test_destroy_closes_the_open_streams(fake, tmp_path):
    events = []
    fake.script(cancel=lambda session: events.append("cancel") or 0, deleted=lambda session: events.append("deleted"))
    context = abi.Context(tmp_path, fake.library)
    with abi.Context(tmp_path, fake.library) as other, other.open() as unharmed:
        streams = [context.open() for _ in range(3)]
        context.close()
        assert events == ["cancel", "deleted"] * 3
        for stream in streams:
            with pytest.raises(abi.Error, match="closed LLM stream"):
                stream.next()
            stream.close()
        assert unharmed.next().text == "a"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("silently", "fake opened no stream, and gave no reason"),
        ("with a message", "no room"),
        ("with an exception", "fake exception"),
    ],
)
def test_an_open_that_fails_leaves_nothing_behind(fake, context, how, message):
    def fail(context_handle, config, out_error):
        if how == "with a message":
            fake.set_error(out_error, b"no room")
        if how == "with an exception":
            fake.set_error(out_error, b"forgotten")
            fake.throw(THROW_STD_EXCEPTION)
        return 0

    fake.script(open=fail)
    for _ in range(3):
        with pytest.raises(abi.Error) as error:
            context.open()
        assert error.value.message == message
    assert fake.library.llm_stream_open(context.handle, byref(abi.config()), None) is None
    assert fake.live_sessions() == 0
    fake.script()
    with context.open(max_tokens=2) as stream:
        stream.prefill([1])
        assert stream.generate() == "aa"


def test_a_message_beside_a_session_is_no_error(fake, context):
    def chat(context_handle, config, out_error):
        fake.set_error(out_error, b"all is well")
        return 1

    fake.script(open=chat)
    context.open().close()  # `call` checks that there is no message


def test_where_no_backend_serves_the_error_says_what_there_is_and_why(fake, tmp_path):
    (tmp_path / "text").mkdir()
    for name in ["model.bin", "README"]:
        (tmp_path / "text" / name).touch()
    fake.script(can_serve=lambda bundle_dir: 0)
    with abi.Context(tmp_path, fake.library) as context:
        for attempt in (context.open, lambda: context.tokenize("text")):
            with pytest.raises(abi.Error) as error:
                attempt()
            for part in [str(tmp_path), "holds README, model.bin", "llama.cpp needs a text/*.gguf", "fake: ", "mlx"]:
                assert part in error.value.message


def test_stats(fake, stream):
    stream.prefill([1])
    stream.next()
    stats = stream.stats()
    assert stats == {
        "backend": "fake",
        "device": "device \N{REPLACEMENT CHARACTER}",
        "stop_reason": "",
        "prompt_tokens": 0,
        "reused_tokens": 0,
        "generated_tokens": 1,
        "drafted_tokens": 0,
        "accepted_tokens": 0,
        "kv_used": 0,
        "kv_capacity": 0,
        "prefill_ms": 0.0,
        "decode_ms": 0.0,
        "ignored_options": ["repeat_penalty"],
    }


def test_report(fake, context):
    report = context.report()
    assert report["chosen"] == "fake"
    assert {"llama.cpp", "fake", "litert-lm", "mlx-coreml"} == {backend["name"] for backend in report["backends"]}


def test_report_on_gpus(fake, context, monkeypatch):
    """Whoever names another backend wants no device of llama.cpp's woken."""

    def gpu():
        return context.report()["gpu"]

    found = gpu()
    assert found == {"devices": [], "reason": "llama.cpp is not in this library for tests"}
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "llama.cpp")
    assert gpu() == found
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "fake")
    assert gpu() is None


def test_the_verifier_callback_is_taken_and_given_back(fake, context):
    callback = abi.VerifierCallback(lambda event, user_data: None)
    assert fake.library.call("set_verifier_callback", context.handle, callback, None) == abi.OK
    assert fake.library.call("set_verifier_callback", context.handle, abi.VerifierCallback(), None) == abi.OK


class TestVocabulary:
    """The fake's tokens are bytes, and 256 begins a text."""

    def test_tokenize(self, context):
        assert context.tokenize(b"a\0\xff", add_special=False) == [97, 0, 255]
        assert context.tokenize("", add_special=True) == [256]

    def test_no_tokens_are_freeable(self, fake, context):
        tokens, count = ctypes.POINTER(ctypes.c_int)(), c_size_t(99)
        fake.library.call("tokenize", context.handle, None, 0, 0, 0, byref(tokens), byref(count))
        assert count.value == 0 and tokens
        fake.library.free_tokens(ctypes.cast(tokens, c_void_p))

    def test_detokenize_is_valid_utf8(self, context):
        assert context.detokenize("größe 😀".encode()) == "größe 😀"
        assert context.detokenize([0xF0, 0x9F, 97, 0, 0xFF]) == "\ufffda\ufffd\ufffd"
        assert context.detokenize([256, 97], unparse_special=True) == "<s>a"
        assert context.detokenize([256, 97], remove_special=True, unparse_special=True) == "a"
        assert context.detokenize([]) == ""

    def test_detokenize_counts_what_it_writes(self, fake, context):
        text = ctypes.create_string_buffer(b"stale", 16)
        ids = (ctypes.c_int * 2)(0xC3, 97)  # four bytes of text: U+FFFD, a
        for cap in (0, 1, 4):
            with pytest.raises(abi.Error, match=f"needs a text_cap of 5 bytes .* text_cap is {cap}"):
                fake.library.call("detokenize", context.handle, ids, 2, 0, 0, text, cap)
        assert fake.library.call("detokenize", context.handle, ids, 2, 0, 0, text, 5) == 4
        assert text.value.decode() == "\ufffda"

    def test_errors_of_the_tokenizer_pass(self, context):
        with pytest.raises(abi.Error, match="no token of the fake") as error:
            context.detokenize([257])
        assert error.value.status == abi.INVALID_ARG

    def test_metadata(self, fake, context):
        value = fake.library.call_for_string("model_meta", context.handle, b"fake.key")
        assert value == "fake value \N{REPLACEMENT CHARACTER}"
        with pytest.raises(abi.Error, match='no metadata under "no.such.key"') as error:
            fake.library.call_for_string("model_meta", context.handle, b"no.such.key")
        assert error.value.status == abi.INVALID_ARG
