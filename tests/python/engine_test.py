"""Engine and Stream on tiny models whose text is known."""

from __future__ import annotations

import array
import gc
import sys
import threading

import elizainference as eliza
import pytest

from tests.support import models


@pytest.fixture(scope="module")
def engine():
    with eliza.Engine(models.bundle("tiny_llama_cycle"), raw=True) as engine:
        yield engine


@pytest.fixture(scope="module")
def noise():
    with eliza.Engine(models.bundle("tiny_llama_random"), raw=True, max_tokens=24) as engine:
        yield engine


def test_stream_brings_a_token_at_a_time(engine):
    chunks = list(engine.stream("abc", max_tokens=8))
    assert [chunk.text for chunk in chunks] == list("defghijk")
    assert all(len(chunk.tokens) == 1 and chunk.drafted == chunk.accepted == 0 for chunk in chunks)


def test_generate_is_the_stream_in_one_piece(noise):
    chunks = list(noise.stream("hello"))
    completion = noise.generate("hello")
    assert completion.text == str(completion) == "".join(chunk.text for chunk in chunks)
    assert completion.tokens == tuple(token for chunk in chunks for token in chunk.tokens)
    assert len(completion.tokens) == 24


def test_completion_says_how_it_came_about(engine):
    completion = engine.generate("abc", max_tokens=5)
    assert (completion.backend, completion.device, completion.stop_reason) == ("llama.cpp", "cpu", "max_tokens")
    assert completion.stats.prompt_tokens == 4  # BOS is one
    assert completion.stats.generated_tokens == 5
    assert completion.stats.kv_used <= completion.stats.kv_capacity
    assert completion.timings.first_token >= completion.timings.prefill > 0
    assert completion.timings.decoded_tokens == 4
    assert completion.timings.tokens_per_second > 0


def test_the_text_ends_by_itself():
    with eliza.Engine(models.bundle("tiny_llama_end"), raw=True) as engine:
        completion = engine.generate("abc")
    assert completion.text == "defghij"
    assert completion.stop_reason == "end_of_generation"


def test_a_full_context_ends_it(engine):
    completion = engine.generate("abc", context_size=64)
    assert completion.stop_reason == "context_full"
    assert completion.text == models.alphabet("c", len(completion.tokens))
    assert completion.stats.kv_capacity >= 64


def test_characters_are_whole():
    with eliza.Engine(models.bundle("tiny_llama_utf8"), raw=True) as engine:
        chunks = list(engine.stream("a", max_tokens=16))
    assert "".join(chunk.text for chunk in chunks) == models.utf8("a", 8)
    assert len(chunks) == 16  # a byte a token: most bring no character, and all are reported


def test_malformed_bytes_become_replacement_characters():
    with eliza.Engine(models.bundle("tiny_llama_malformed"), raw=True) as engine:
        assert engine.generate("a").text == "\ufffdb\ufffdc\ufffdd\ufffd"


def test_prompt_as_tokens(engine):
    tokens = engine.tokenize("abc")
    assert engine.generate(tokens, max_tokens=4).text == "defg"
    assert engine.generate(tuple(tokens), max_tokens=4).text == "defg"
    assert engine.generate(array.array("i", tokens), max_tokens=4).text == "defg"  # type: ignore[arg-type]
    assert engine.generate(iter(tokens), max_tokens=4).text == "defg"  # type: ignore[arg-type]


def test_tokenize_and_back(engine):
    for text in ("", "the cat in there", "naïve 😀", "a\0b", "</s>"):
        tokens = engine.tokenize(text, add_special=False)
        assert engine.detokenize(tokens) == text.replace("\0", "\ufffd")
        assert engine.tokenize(text)[1:] == tokens
    assert engine.tokenize("</s>", add_special=False, parse_special=True) == [2]
    assert engine.detokenize([2]) == ""
    assert engine.detokenize([2], unparse_special=True) == "</s>"
    # More bytes than the first guess at a buffer.
    long = "the cat " * 10_000
    assert engine.detokenize(engine.tokenize(long), remove_special=True) == long


def test_seeds(noise):
    def sample(seed: int | None) -> str:
        return noise.generate("hello", temperature=1.5, seed=seed).text

    assert sample(7) == sample(7) == sample(7)
    assert len({sample(seed) for seed in range(4)}) == 4
    assert len({sample(None) for _ in range(4)}) == 4


def test_defaults_are_the_engines_and_a_call_overrides_them():
    with eliza.Engine(models.bundle("tiny_llama_cycle"), raw=True, max_tokens=3) as engine:
        assert engine.generate("abc").text == "def"
        assert engine.generate("abc", max_tokens=1).text == "d"


def test_stop_strings(engine):
    # Of two that end at the same token, the one that begins first.
    completion = engine.generate("abc", max_tokens=20, stop=["xyz", "ij", "hij"])
    assert (completion.text, completion.stop_reason) == ("defg", "stop_string")
    assert engine.generate("abc", stop="z").text == models.alphabet("c", 22)
    # What only looks like a beginning comes out again.
    assert engine.generate("abc", max_tokens=6, stop="hi!").text == "defghi"


def test_streams_do_not_disturb_each_other(engine):
    streams = [engine.stream(prompt, max_tokens=10) for prompt in ("a", "h", "q")]
    texts = ["", "", ""]
    for _ in range(10):
        for i, stream in enumerate(streams):
            texts[i] += next(stream).text
    assert texts == [models.alphabet(prompt, 10) for prompt in "ahq"]


def test_one_engine_on_many_threads(noise):
    alone = noise.generate("hello", seed=1, temperature=1.0).text
    texts: list[str] = []

    def work() -> None:
        texts.extend(noise.generate("hello", seed=1, temperature=1.0).text for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [alone] * 20


def test_cancel_from_another_thread(engine):
    stream = engine.stream("abc")
    first, cancelled = threading.Event(), threading.Event()
    caught: list[BaseException] = []

    def consume() -> None:
        try:
            for count, _ in enumerate(stream):
                first.set()
                # Where this thread alone gets to run, the answer does not end before the other one has.
                if count == 100:
                    cancelled.wait()
        except eliza.Cancelled as error:
            caught.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    first.wait()
    stream.cancel()
    cancelled.set()
    consumer.join()
    assert caught and caught[0].status == -7
    assert stream.stats.stop_reason == "cancelled"
    with pytest.raises(StopIteration):
        next(stream)
    stream.cancel()


def test_cancel_before_the_first_token(engine):
    stream = engine.stream("abc")
    stream.cancel()
    with pytest.raises(eliza.Cancelled):
        next(stream)


def test_leaving_a_stream_early(engine):
    with engine.stream("abc") as stream:
        assert next(stream).text == "d"
    assert list(stream) == []
    assert stream.stats.stop_reason == "cancelled"
    stream.close()
    assert engine.generate("abc", max_tokens=2).text == "de"


def test_statistics_while_it_runs(engine):
    with engine.stream("abc", max_tokens=5) as stream:
        next(stream)
        next(stream)
        assert stream.stats.generated_tokens == 2
        assert stream.stats.stop_reason == ""
        list(stream)
        assert stream.stats.generated_tokens == 5


# --- What an engine keeps -----------------------------------------------------------------------


def test_a_warm_cache(noise):
    cold = noise.generate("hello there")
    assert noise.generate("hello there", prompt_cache_key="k").stats.reused_tokens == 0
    warm = noise.generate("hello there", prompt_cache_key="k")
    assert warm.text == cold.text
    assert warm.stats.reused_tokens == warm.stats.prompt_tokens - 1
    assert noise.generate("hello there", prompt_cache_key="k", slot_id=1).stats.reused_tokens == 0
    assert noise.generate("hello there", prompt_cache_key="other").stats.reused_tokens == 0


def test_a_saved_stream_goes_on(engine, noise, tmp_path):
    path = tmp_path / "slot"
    with noise.stream("hello", max_tokens=24) as stream:
        start = [next(stream) for _ in range(5)]
        stream.save(path)
        rest = list(stream)
    expected = [token for chunk in rest for token in chunk.tokens]
    with noise.stream([expected[0]], max_tokens=18) as stream:
        stream.restore(path)
        assert [token for chunk in stream for token in chunk.tokens] == expected[1:]
        assert stream.stats.kv_used >= len(start) + 18
    # A file of another model leaves the stream as it was.
    with engine.stream("abc", max_tokens=4) as stream:
        with pytest.raises(eliza.InvalidArgument):
            stream.restore(path)
        assert "".join(chunk.text for chunk in stream) == "defg"


def test_a_prompt_can_be_saved_before_the_answer(engine, tmp_path):
    path = tmp_path / "slot"
    with engine.stream("abc", max_tokens=4) as stream:
        stream.save(path)
        assert "".join(chunk.text for chunk in stream) == "defg"
        with pytest.raises(eliza.InvalidArgument, match="has ended"):
            stream.save(path)
    with engine.stream(engine.tokenize("x", add_special=False), max_tokens=3) as stream:
        stream.restore(path)
        assert "".join(chunk.text for chunk in stream) == "yz "
        assert stream.stats.kv_used >= 4 + 1 + 2
    with engine.stream("abc") as stream:
        next(stream)
        with pytest.raises(eliza.InvalidArgument, match="before the first next"):
            stream.restore(path)
        with pytest.raises(eliza.InvalidArgument, match="NUL"):
            stream.save("a\0b")
        with pytest.raises(eliza.ElizaError):
            stream.save(tmp_path / "none" / "slot")


def test_drafting_changes_no_text(engine):
    drafted = engine.generate("abc", max_tokens=20, drafter=models.text_model("tiny_llama_cycle"))
    assert drafted.text == models.alphabet("c", 20)
    assert drafted.stats.drafted_tokens == drafted.stats.accepted_tokens > 10
    chunks = list(engine.stream("abc", max_tokens=20, drafter=models.text_model("tiny_llama_cycle"), draft_max=3))
    assert [len(chunk.tokens) for chunk in chunks[:3]] == [1, 4, 4]
    assert [(chunk.drafted, chunk.accepted) for chunk in chunks[:3]] == [(0, 0), (3, 3), (3, 3)]


def test_a_drafter_that_is_wrong_now_and_then():
    name = "tiny_gemma4_mtp_wrong"
    with eliza.Engine(models.bundle(name), raw=True, drafter=f"mtp/drafter-{name}.gguf") as engine:
        completion = engine.generate("abc", max_tokens=40)
        assert completion.text == models.alphabet("c", 40)
        assert 0 < completion.stats.accepted_tokens < completion.stats.drafted_tokens
        assert engine.generate("abc", max_tokens=40, draft_max=0).stats.drafted_tokens == 0


def test_a_drafter_that_is_none(engine):
    with pytest.raises(eliza.ElizaError, match="nothing.gguf"):
        engine.stream("abc", drafter="nothing.gguf")


def test_cache_types(engine):
    for name in ("f32", "f16", "q8_0"):
        assert engine.generate("abc", max_tokens=5, cache_type_k=name, cache_type_v=name).text == "defgh"
    with pytest.raises(eliza.ElizaError, match="q8_0"):
        engine.stream("abc", cache_type_k="q9")


# --- Embeddings, ends of turns -------------------------------------------------------------------


def test_embeddings(noise):
    mean = noise.embed("abc")
    assert len(mean) == 64 and abs(sum(x * x for x in mean) - 1) < 1e-3
    assert noise.embed("abc", pooling="mean") == mean == noise.embed("abc")
    assert mean != noise.embed("abc", "last") != noise.embed("abd", "last")
    assert noise.embed("abc", "cls") == noise.embed("xyz", "cls")  # the token that begins every text
    assert len(noise.embed("")) == 64
    for pooling in ("max", 1, [], None):
        with pytest.raises(eliza.InvalidArgument, match="mean, cls, last"):
            noise.embed("abc", pooling=pooling)  # type: ignore[arg-type]
    with pytest.raises(eliza.InvalidArgument, match="5001 tokens"):
        noise.embed("x" * 5000)


def test_embeddings_as_arrays(noise, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("float32 = 4\n\ndef asarray(values, dtype): return (dtype, values)\n")
    as_list = noise.embed("abc")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert noise.embed("abc") == (4, as_list)
    finally:
        sys.modules.pop("numpy")


def test_ends_of_turns():
    with eliza.Engine(models.bundle("tiny_llama_end")) as engine:  # ends after j
        over, not_over = engine.eot_score(engine.tokenize("ij")), engine.eot_score(engine.tokenize("ab"))
        assert over.probability > not_over.probability
        assert over.top_token == 2 and over.top_probability == over.probability
        c = engine.tokenize("c", add_special=False)[0]
        assert not_over.top_token == c
        assert engine.eot_score(engine.tokenize("ab"), target=c).probability == not_over.top_probability
        for tokens, target in [([], None), ([10**6], None), ([1], -1), ([1], 10**6)]:
            with pytest.raises(eliza.InvalidArgument):
                engine.eot_score(tokens, target)


def test_metadata(engine):
    assert engine.metadata("general.architecture") == "llama"
    assert engine.metadata("no.such.key") is None


def test_backends(engine):
    backends = {backend.name: backend for backend in engine.backends()}
    assert {"llama.cpp", "litert-lm", "mlx-coreml"} <= backends.keys()
    assert [name for name, backend in backends.items() if backend.chosen] == ["llama.cpp"]
    assert backends["llama.cpp"].compiled and backends["llama.cpp"].can_serve
    assert all(backend.reason for backend in backends.values())
    assert engine.backend_report()["chosen"] == "llama.cpp"


def test_repr_says_what_answers(monkeypatch):
    path = str(models.bundle("tiny_llama_end"))
    engine = eliza.Engine(path, raw=True)
    # Before anything is opened, what the report expects.
    assert repr(engine) == f"<Engine bundle={path!r}, backend='llama.cpp', device='cpu'>"
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "no-such-thing")
    assert repr(engine) == f"<Engine bundle={path!r}, backend=None>"
    monkeypatch.delenv("ELIZA_LLM_BACKEND")
    engine.generate("abc")
    assert repr(engine) == f"<Engine bundle={path!r}, backend='llama.cpp', device='cpu'>"
    engine.close()
    engine.close()
    assert repr(engine).endswith(", closed>")
    with eliza.Engine(path) as never_used:
        pass
    assert repr(never_used) == f"<Engine bundle={path!r}, closed>"


def test_repr_asks_once(monkeypatch):
    engine = eliza.Engine(models.bundle("tiny_llama_end"))
    first = repr(engine)
    monkeypatch.setattr(engine, "backend_report", None)
    assert repr(engine) == first


def test_a_stream_outlives_an_engine_that_nobody_holds():
    stream = eliza.Engine(models.bundle("tiny_llama_cycle"), raw=True, max_tokens=4).stream("abc")
    gc.collect()
    assert "".join(chunk.text for chunk in stream) == "defg"


def test_engine_closed_under_a_stream():
    engine = eliza.Engine(models.bundle("tiny_llama_cycle"), raw=True)
    stream = engine.stream("abc")
    next(stream)
    engine.close()
    with pytest.raises(eliza.ElizaError):
        next(stream)
    with pytest.raises(eliza.InvalidArgument, match="closed"):
        engine.generate("abc")
    with pytest.raises(eliza.InvalidArgument, match="closed"), engine:
        pass
    stream.close()
