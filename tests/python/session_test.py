"""Chats: the KV cache that they keep shortens what the model reads, and changes nothing that it says.

The recall models go on with the alphabet forwards where an A was said before, and backwards for a B; so a cache that
was lost, or holds what should be gone, shows in the text.
"""

from __future__ import annotations

import threading
import zipfile

import elizainference as eliza
import pytest

from tests.llama_cpp import recall
from tests.support import models


@pytest.fixture(params=recall.ARCHITECTURES)
def engine(request):
    with eliza.Engine(recall.bundle(request.param), max_tokens=6, context_size=512) as engine:
        yield engine


def user(content: str) -> dict:
    return {"role": "user", "content": content}


def afresh(engine: eliza.Engine, messages: list, **options) -> eliza.Completion:
    """What a stream says that reads the whole conversation."""
    return engine.generate(messages, **options)


def test_the_second_turn_reads_only_what_is_new(engine):
    with engine.chat(max_tokens=3) as chat:
        first = chat.generate("Axabc")
        assert first.stats.reused_tokens == 0
        second = chat.generate("pqr")
        assert first.timings.open > 0 == second.timings.open
        # Of the first turn everything, with or without the last token of the answer, which no step has taken in.
        before = first.stats.prompt_tokens + len(first.tokens)
        assert before - 1 <= second.stats.reused_tokens <= before
        assert second.stats.prompt_tokens == before + len(
            engine.tokenize("\n<|user|>pqr\n<|assistant|>", add_special=False)
        )
        assert second.stats.kv_used == second.stats.prompt_tokens + len(second.tokens)
        assert chat.messages[-2:] == [user("pqr"), {"role": "assistant", "content": second.text}]

        whole = afresh(engine, chat.messages[:-1], max_tokens=3)
        assert second.text == whole.text
        assert second.stats.prompt_tokens == whole.stats.prompt_tokens


def test_an_answer_in_other_tokens_than_its_text_is_read_again(engine):
    with engine.chat() as chat:
        first = chat.generate("Axabc")
        assert first.text == "xyz ab"  # whose " a" is one token where it is read
        second = chat.generate("pqr")
        assert second.stats.reused_tokens == first.stats.prompt_tokens + len("xyz")
        assert second.text == afresh(engine, chat.messages[:-1]).text


@pytest.mark.parametrize("name", ["tiny_llama_cycle", "tiny_gemma3_cycle"])
def test_many_turns_are_what_full_prefills_are(name):
    with eliza.Engine(models.bundle(name), max_tokens=9, context_size=1024) as engine, engine.chat() as chat:
        for turn in range(8):
            answer = chat.generate("abcxyz"[: 1 + turn % 6])
            assert answer.text == afresh(engine, chat.messages[:-1]).text
            assert (answer.stats.reused_tokens > answer.stats.prompt_tokens // 2) == (turn > 0)


def test_messages_may_be_changed_between_turns(engine):
    with engine.chat([{"role": "system", "content": "A"}]) as chat:
        forwards = chat.generate("abc").text
        chat.generate("pqr")
        chat.messages[:] = [{"role": "system", "content": "B"}]
        backwards = chat.generate("abc")
        assert backwards.text == afresh(engine, chat.messages[:-1]).text != forwards
        # Back by one turn, and on another way.
        chat.generate("pqr")
        del chat.messages[-2:]
        other = chat.generate("pxyz")
        assert other.text == afresh(engine, chat.messages[:-1]).text
        chat.messages.clear()
        assert chat.generate("Aabc").text == afresh(engine, [user("Aabc")]).text


def test_where_the_sliding_window_has_moved_on_all_is_read_again():
    with eliza.Engine(recall.bundle("gemma3"), max_tokens=6, context_size=2048) as engine, engine.chat() as chat:
        chat.generate("xAx" + "xyz" * 400)
        chat.messages.clear()
        answer = chat.generate("xAxabc")
        assert answer.stats.reused_tokens == 0
        assert answer.text == afresh(engine, [user("xAxabc")]).text


def test_an_answer_that_stops_early_is_history_as_it_was_shown(engine):
    with engine.chat(stop="\n", grammar='root ::= [a-c]{3} "\\n" [d-f]{3}', max_tokens=0) as chat:
        answer = chat.generate("Aabc")
        assert answer.stop_reason == "stop_string" and len(answer.text) == 3
        assert chat.messages == [user("Aabc"), {"role": "assistant", "content": answer.text}]
        second = chat.generate("pqr")
        assert second.stats.reused_tokens > 0
        options = {"stop": "\n", "grammar": 'root ::= [a-c]{3} "\\n" [d-f]{3}', "max_tokens": 0}
        assert second.text == afresh(engine, chat.messages[:-1], **options).text


def test_a_turn_that_is_cut_off_adds_nothing(engine):
    with engine.chat() as chat:
        whole = chat.generate("Aabc").text
        chat.messages.clear()
        # Left, cancelled, and never read.
        with chat.stream("Babc") as stream:
            next(stream)
        stream = chat.stream("Babc")
        next(stream)
        stream.cancel()
        with pytest.raises(eliza.Cancelled):
            next(stream)
        chat.stream("Babc")
        early = chat.stream("Babc")
        early.cancel()
        with pytest.raises(eliza.Cancelled):
            next(early)
        assert chat.messages == []
        assert chat.generate("Aabc").text == whole


def test_the_next_turn_ends_the_one_before(engine):
    with engine.chat(max_tokens=0) as chat:
        first = chat.stream("Aabc")
        next(first)
        second = chat.stream("Aabc")
        assert list(first) == [] and first.stats.stop_reason == "cancelled"
        # What belongs to the first does not reach the second.
        first.cancel()
        first.close()
        with engine.stream("Aabc") as alone:
            assert next(second).text == next(alone).text


def test_a_turn_waits_for_the_thread_that_reads_the_one_before(engine):
    with engine.chat(max_tokens=0, context_size=4096) as chat:
        with chat.stream("Aabc") as stream:
            expected = "".join(next(stream).text for _ in range(6))
        reading, ended = threading.Event(), threading.Event()
        ends: list[str] = []

        def read() -> None:
            stream = chat.stream("Babc")
            try:
                for count, _ in enumerate(stream):
                    reading.set()
                    # Where this thread alone gets to run, the answer does not end before the other one has.
                    if count == 1000:
                        ended.wait()
            except eliza.Cancelled:
                pass
            ends.append(stream.stats.stop_reason)

        for _ in range(5):
            reader = threading.Thread(target=read)
            reading.clear()
            ended.clear()
            reader.start()
            reading.wait()
            with chat.stream("Aabc") as stream:
                ended.set()
                assert "".join(next(stream).text for _ in range(6)) == expected
            reader.join()
        assert ends == ["cancelled"] * 5


def test_a_conversation_that_is_too_long(engine):
    with engine.chat(context_size=256) as chat:
        chat.generate("Aabc")
        before = list(chat.messages)
        with pytest.raises(eliza.InvalidArgument, match="context_size"):
            chat.generate("x" * 300)
        assert chat.messages == before
        assert chat.generate("pqr").text == afresh(engine, chat.messages[:-1]).text


def test_seeds_of_turns():
    with eliza.Engine(models.bundle("tiny_llama_random"), max_tokens=12, temperature=1.5) as engine:

        def again(chat: eliza.Chat) -> str:
            chat.messages.clear()
            return chat.generate("hello").text

        with engine.chat(seed=7) as chat:
            assert again(chat) == again(chat) == engine.generate("hello", seed=7).text
        with engine.chat() as chat:
            assert len({again(chat) for _ in range(4)}) == 4


def test_with_a_drafter():
    drafter = models.text_model("tiny_llama_cycle")
    with eliza.Engine(recall.bundle("llama"), max_tokens=12, context_size=512) as engine:
        with engine.chat(drafter=drafter) as chat:
            for said in ("xAxabc", "pq", "Bst"):
                answer = chat.generate(said)
                assert answer.text == afresh(engine, chat.messages[:-1]).text
                assert answer.stats.drafted_tokens > 0
            assert answer.stats.reused_tokens > 0


def test_a_warm_cache_serves_the_first_turn(engine):
    system = [{"role": "system", "content": "xAx"}]
    with engine.chat(system, prompt_cache_key="chat") as chat:
        assert chat.generate("abc").stats.reused_tokens == 0
    with engine.chat(system, prompt_cache_key="chat") as chat:
        answer = chat.generate("abd")
        assert answer.stats.reused_tokens > len("<|system|>xAx")
        assert answer.text == afresh(engine, chat.messages[:-1]).text


# --- Saved chats ---------------------------------------------------------------------------------


def test_a_saved_chat_goes_on(engine, tmp_path):
    path = tmp_path / "chat"
    with engine.chat() as chat:
        first = chat.generate("Axabc")
        chat.save(path)
        expected = chat.generate("pqr")
        assert path.stat().st_mode & 0o777 == 0o600
        assert list(tmp_path.iterdir()) == [path]
    with engine.chat() as chat:
        chat.generate("Bxyz")
        chat.restore(path)
        assert chat.messages == [user("Axabc"), {"role": "assistant", "content": first.text}]
        again = chat.generate("pqr")
        assert (again.text, again.stats.reused_tokens) == (expected.text, expected.stats.reused_tokens)


def test_a_file_that_is_no_chat_leaves_the_chat_as_it_was(engine, tmp_path):
    path = tmp_path / "chat"
    with engine.chat() as chat:
        chat.generate("Axabc")
        chat.save(path)
        whole = path.read_bytes()
        expected = chat.generate("pqr").text
        del chat.messages[2:]
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        for content in (b"", whole[:-100], bytes(damaged), b"PK\3\4" + bytes(100)):
            path.write_bytes(content)
            with pytest.raises(eliza.ElizaError):
                chat.restore(path)
        with pytest.raises(FileNotFoundError):
            chat.restore(tmp_path / "none")
        assert chat.generate("pqr").text == expected


def archive(path, parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in parts.items():
            file.writestr(name, content)


def test_an_archive_from_a_stranger(engine, tmp_path):
    """Is an error of ours, and takes no memory that the file's size does not announce."""
    path = tmp_path / "chat"
    with engine.chat() as chat:
        chat.generate("Axabc")
        chat.save(path)
        with zipfile.ZipFile(path) as saved:
            good = {name: saved.read(name) for name in saved.namelist()}
        assert set(good) == {"chat.json", "kv-cache"}
        messages = list(chat.messages)

        def refused(message: str) -> None:
            with pytest.raises(eliza.InvalidArgument, match=f"is no saved chat, or is damaged: .*{message}"):
                chat.restore(path)

        for name in good:
            archive(path, good | {name: bytes(64 << 20)}, zipfile.ZIP_DEFLATED)
            refused("is compressed")
            archive(path, {other: content for other, content in good.items() if other != name})
            refused(name)
        archive(path, good | {"chat.json": b" " * (33 << 20)})
        refused("chat.json has 34603008 bytes")
        archive(path, good | {"chat.json": b"[" * 100_000})
        refused("(recursion|overflow)")
        archive(path, good | {f"{n:060}": b"" for n in range(10_000)})
        refused("too many")
        for conversation in (
            b"[]",
            b"5",
            b"\xff",
            b"{}",
            b'{"messages": 5, "tokens": []}',
            b'{"messages": [5], "tokens": []}',
            b'{"messages": [{"content": "x"}], "tokens": []}',
            b'{"messages": [], "tokens": [1e999]}',
            b'{"messages": [], "tokens": [-1]}',
            b'{"messages": [], "tokens": "12"}',
        ):
            archive(path, good | {"chat.json": conversation})
            refused("")
        # A flag in the list of what it holds.
        archive(path, good)
        whole = bytearray(path.read_bytes())
        whole[whole.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(whole)
        refused("password")
        assert chat.messages == messages
        archive(path, good)
        chat.restore(path)


def test_what_could_not_be_restored_is_not_saved(engine, tmp_path):
    with engine.chat([user("a" * (33 << 20))]) as chat:
        with pytest.raises(eliza.InvalidArgument, match="at most 33554432 can be saved"):
            chat.save(tmp_path / "chat")
        assert list(tmp_path.iterdir()) == []


def test_another_models_chat_is_refused(tmp_path):
    path = tmp_path / "chat"
    with eliza.Engine(recall.bundle("llama"), max_tokens=6, context_size=512) as engine, engine.chat() as chat:
        chat.generate("Aabc")
        chat.save(path)
    with eliza.Engine(recall.bundle("gemma3"), max_tokens=6, context_size=512) as engine, engine.chat() as chat:
        text = chat.generate("Aabc").text
        with pytest.raises(eliza.InvalidArgument, match="model") as caught:
            chat.restore(path)
        assert str(path) in str(caught.value)
        chat.messages.clear()
        assert chat.generate("Aabc").text == text


def test_no_saving_in_the_middle_of_an_answer(engine, tmp_path):
    with engine.chat(max_tokens=0) as chat:
        stream = chat.stream("Aabc")
        next(stream)
        for call in (chat.save, chat.restore):
            with pytest.raises(eliza.InvalidArgument, match="in progress"):
                call(tmp_path / "chat")
        with pytest.raises(eliza.InvalidArgument, match="restore the chat"):
            stream.restore(tmp_path / "chat")
        stream.close()
        chat.save(tmp_path / "chat")
        chat.restore(tmp_path / "chat")


def test_closed_things(engine):
    chat = engine.chat()
    stream = chat.stream("Aabc")
    next(stream)
    chat.close()
    chat.close()
    assert list(stream) == []
    assert repr(chat) == "<Chat 0 messages, closed>"
    with pytest.raises(eliza.InvalidArgument, match="this chat is closed"):
        chat.generate("Aabc")


def test_an_engine_closed_under_a_chat():
    engine = eliza.Engine(recall.bundle("llama"), context_size=256)
    chat = engine.chat()
    stream = chat.stream("Aabc")
    next(stream)
    engine.close()
    with pytest.raises(eliza.ElizaError):
        next(stream)
    with pytest.raises(eliza.ElizaError):
        chat.generate("Aabc")
    chat.close()


@pytest.mark.parametrize("message", [5, {"role": "user"}, {"content": "x"}, None])
def test_messages_that_are_none(engine, message):
    with engine.chat() as chat, pytest.raises(eliza.InvalidArgument, match="message 0"):
        chat.stream(message)
