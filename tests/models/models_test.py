"""The tiny models say what make_tiny_gguf.py promises: other tests build on it."""

import pytest

from tests.support import abi, models


def _say(model: str, prompt: str, max_tokens: int = 0) -> tuple[str, dict]:
    """The text after `prompt`, and the stream's statistics."""
    with abi.Context(models.bundle(model)) as context, context.open(max_tokens=max_tokens) as stream:
        stream.prefill(context.tokenize(prompt))
        text = stream.generate()
        return text, stream.stats()


@pytest.mark.parametrize("model", ["tiny_llama_cycle", "tiny_gemma3_cycle", "tiny_gemma4_mtp"])
def test_the_alphabet(model):
    assert _say(model, "abc", 12)[0] == "defghijklmno"
    # Longer than the window of the layers that have one.
    assert _say(model, "the quick brown fox", 100)[0] == models.alphabet("x", 100)


def test_the_end():
    text, stats = _say("tiny_llama_end", "abc")
    assert text == "defghij"
    assert stats["stop_reason"] == "end_of_generation"


def test_characters_of_several_tokens():
    assert _say("tiny_llama_utf8", "a", 16)[0] == "😀b€céd你a"


def test_malformed_bytes():
    text, stats = _say("tiny_llama_malformed", "a")
    assert text == "\ufffdb\ufffdc\ufffdd\ufffd"
    assert stats["generated_tokens"] == 9


@pytest.mark.parametrize("model", ["tiny_llama_random", "tiny_gemma3_random"])
def test_noise_depends_on_the_prompt(model):
    texts = {_say(model, prompt, 24)[0] for prompt in ("abc", "bbc", "abcabc")}
    assert len(texts) == 3
    assert _say(model, "abc", 24)[0] in texts


def test_tokenizer():
    with abi.Context(models.bundle("tiny_llama_cycle")) as context:
        assert len(context.tokenize("the", add_special=False)) == 2  # th, e
        assert len(context.tokenize("xyz", add_special=True)) == 4
        assert len(context.tokenize("é", add_special=False)) == 2  # its bytes
        assert context.library.call_for_string("model_meta", context.handle, b"tokenizer.chat_template")
