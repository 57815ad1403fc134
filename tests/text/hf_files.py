"""Small tokenizer.json files like those of real models: made and read by the `tokenizers` package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

SPACE = "\u2581"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

_PROSE = """It's a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of
a wife. They'll say we've 1234567 reasons; I'm sure you'd know. THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG.

    def tokenize(text):\n\t\treturn [token for token in text.split('  ')]\n\n\n
Überraschung: naïve café, señor — “quoted” … 你好，世界。こんにちは 世界 안녕하세요 привет мир 😀😀👩‍👩‍👧
3.14159 100,000.00 ½ Ⅻ ٣٤٥
<div class="x">  &nbsp; </div> http://example.com/?a=1&b=2   trailing   spaces   \r\n\r\n
"""


def _corpus() -> Iterator[str]:
    for _ in range(4):
        yield _PROSE
        yield from _PROSE.split("\n")


def _special(*texts: str) -> list[AddedToken]:
    return [AddedToken(text, special=True, normalized=False) for text in texts]


def _byte_level(pre_tokenizer, **options) -> Tokenizer:
    tokenizer = Tokenizer(BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=700,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=_special("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    return tokenizer


def gpt2() -> Tokenizer:
    """Words by ByteLevel itself."""
    return _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))


def smollm2() -> Tokenizer:
    """Digits apart, then as GPT-2."""
    return _byte_level(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    )


def _llama3_like(expression: str, behavior: str = "isolated", invert: bool = False) -> Tokenizer:
    split = pre_tokenizers.Split(Regex(expression), behavior, invert)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = _byte_level(pre_tokenizers.Sequence([split, level]), ignore_merges=True)
    # Not special: text that stands for itself, wherever it is found; one takes the spaces around it along.
    tokenizer.add_tokens(["<think>", "</think>", AddedToken("[x]", lstrip=True, rstrip=True)])
    begin = tokenizer.token_to_id("<|endoftext|>")
    template = processors.TemplateProcessing("<|endoftext|> $A", None, [("<|endoftext|>", begin)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def llama3() -> Tokenizer:
    """Its expression; whole words first."""
    return _llama3_like(LLAMA3)


def qwen2() -> Tokenizer:
    """A digit at a time; the words are what is kept."""
    return _llama3_like(QWEN2, "removed", invert=True)


def gpt2_split() -> Tokenizer:
    """GPT-2's expression, written out."""
    return _llama3_like(GPT2)


def _pieces(normalizer, pre_tokenizer, decoder, unknown: str = "<unk>", fallback: bool = True) -> Tokenizer:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)] if fallback else []
    tokenizer = Tokenizer(BPE(unk_token=unknown, fuse_unk=True, byte_fallback=fallback))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
    trainer = BpeTrainer(
        vocab_size=900,
        show_progress=False,
        special_tokens=_special("<pad>", "<eos>", "<bos>", "<unk>", *bytes_, "<start_of_turn>"),
        limit_alphabet=120,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    # The bytes are tokens of the model, and not added ones.
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(document))


def _bos(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        "<bos> $A", None, [("<bos>", tokenizer.token_to_id("<bos>"))]
    )
    return tokenizer


def gemma() -> Tokenizer:
    """Spaces become a piece's; runs of them, and of newlines, are tokens found before anything else."""
    tokenizer = _pieces(
        normalizers.Replace(" ", SPACE),
        pre_tokenizers.Split(" ", "merged_with_previous"),
        decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]),
    )
    runs = [character * size for character in ("\n", SPACE) for size in range(2, 8)]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (*runs, "<table>", "</table>")])
    return _bos(tokenizer)


def llama2() -> Tokenizer:
    """A space goes in front of every text."""
    return _bos(
        _pieces(
            normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]),
            None,
            decoders.Sequence(
                [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
            ),
        )
    )


def metaspace() -> Tokenizer:
    """The same, as newer files of that kind say it."""
    return _bos(
        _pieces(
            None,
            pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
            decoders.Sequence(
                [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
            ),
        )
    )


def metaspace_words() -> Tokenizer:
    """Word by word, a space before every part; and no bytes to fall back on."""
    return _pieces(
        None,
        pre_tokenizers.Metaspace(prepend_scheme="always", split=True),
        decoders.Sequence([decoders.Replace(SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
        fallback=False,
    )


ALL: dict[str, Callable[[], Tokenizer]] = {
    maker.__name__: maker
    for maker in (gpt2, smollm2, llama3, qwen2, gpt2_split, gemma, llama2, metaspace, metaspace_words)
}

HARD = [
    "",
    " ",
    "  ",
    "\n",
    "\n\n\n  \n\t\t x",
    "a  b   c    d",
    " leading and trailing ",
    "\t\tif x:\r\n\t\t\treturn\r\n\r\n",
    "   \n   \n   x   \n",
    "x \r y\r\r\nz\x0b\x0c\x85\u2028\u2029\u00a0\u3000end",
    "It's they'll I'VE we'Re 'S 'ſ 'LL ''s 's's don't'",
    "123456789 1 12 123 1234 3.14159 1,000,000 ٣٤٥٦ ½ⅫⅫ ๔๕ 𝟙𝟚𝟛 \U00011de0\U00016ff4",
    "😀 😀😀 👩‍👩‍👧‍👦 🏳️‍🌈 1️⃣",
    "你好，世界。こんにちは世界 안녕하세요 \u1112\u1161\u11ab",
    "e\u0301 café cafe\u0301 \u0301\u0302 न\u093fमस\u094dत\u0947 ก\u0e34น",
    "مرحبا بالعالم שלום עולם",
    "naïve Überraschung señor — “quoted” …",
    "!!!???...,,,;;;:::---___+++===(((([[[[{{{{<<<<",
    "a\0b\0\0c",
    "\x01\x02\x7f\x80\x9f\u200b\ufeff\u00ad",
    "\U0010ffff \ufffd \ue000 \U000e0041",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 8,
    "the the the " * 60,
    SPACE + SPACE * 3 + " " + SPACE,
    "<0x41> <0xFF> <bos><eos> <unk>",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|><|endoftext|> <|endoftext|>",
    "<bos>hi <start_of_turn>user\n<table> </table>\n\n\n\n\n\n\n\n\n\n        x",
    "<|im_start <|im_start|> |> <<|im_end|>>",
    "<think> hm </think>[x]   [x]y  [x]",
    "Ġ Ċ Ā é ÃĀ",
]


def write(tokenizer: Tokenizer, directory: Path, config: dict | None = None) -> Path:
    """Puts tokenizer.json, and a tokenizer_config.json where there is one, into a directory, which is returned."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    if config is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory
