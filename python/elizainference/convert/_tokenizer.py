"""The vocabulary of a GGUF file as a tokenizer.json, whose ids are the same."""

from __future__ import annotations

from typing import Any

from elizainference.convert._gguf import GgufFile

_SPACE = "\u2581"  # SentencePiece's word separator
_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6  # token types; 1 is a plain token

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _split(expression: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


# What ends a generation wherever a vocabulary has it, as llama.cpp knows them: of the architectures that are converted.
_ENDS = {
    "<end_of_turn>",
    "<eos>",
    "<turn|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<|tool_response>",
}

# {tokenizer.ggml.pre: what goes before the model}
_PRE_TOKENIZERS = {
    "smollm": [{"type": "Digits", "individual_digits": True}, _byte_level(True)],
    "gpt-2": [_byte_level(True)],
    "llama-bpe": [_split(_LLAMA3), _byte_level(False)],
    "llama3": [_split(_LLAMA3), _byte_level(False)],
}
_IGNORE_MERGES = {"llama-bpe", "llama3"}


def tokenizer_files(gguf: GgufFile) -> dict[str, dict[str, Any]]:
    """tokenizer.json and tokenizer_config.json.

    Raises:
      BundleError: a kind of vocabulary that is not known.
    """
    tokens = gguf.value("tokenizer.ggml.tokens", list)
    types = gguf.value("tokenizer.ggml.token_type", list, [1] * len(tokens))
    if not all(isinstance(token, str) for token in tokens) or len(types) != len(tokens):
        raise gguf.fail("its tokenizer.ggml.tokens and tokenizer.ggml.token_type do not fit each other")
    if len(set(tokens)) != len(tokens):
        raise gguf.fail("two of its tokens have the same text")
    kind = gguf.value("tokenizer.ggml.model", str)
    if kind == "gpt2":
        document = _byte_level_document(gguf, tokens, types)
    elif kind in ("llama", "gemma4"):
        document = _piece_document(gguf, kind, tokens, types)
    else:
        raise gguf.fail(f"its tokenizer.ggml.model is {kind[:60]!r}; known are 'gpt2', 'llama' and 'gemma4'")
    adds_bos = bool(gguf.value("tokenizer.ggml.add_bos_token", bool, kind != "gpt2"))
    bos = _token(gguf, tokens, "bos")
    if adds_bos and bos is not None:
        document["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {bos: {"id": bos, "ids": [tokens.index(bos)], "tokens": [bos]}},
        }
    return {"tokenizer.json": document, "tokenizer_config.json": _config(gguf, tokens)}


def end_tokens(gguf: GgufFile) -> list[int]:
    """The ids that end a generation: the end of the text, and where a model has them, of a turn or a message.

    Raises:
      BundleError: an id that no token has.
    """
    tokens = gguf.value("tokenizer.ggml.tokens", list)
    named = {_token(gguf, tokens, name) for name in ("eos", "eot", "eom")}
    return [id_ for id_, token in enumerate(tokens) if token in named or token in _ENDS]


def _token(gguf: GgufFile, tokens: list[str], name: str) -> str | None:
    id_ = gguf.metadata.get(f"tokenizer.ggml.{name}_token_id")
    if id_ is None:
        return None
    if not isinstance(id_, int) or not 0 <= id_ < len(tokens):
        raise gguf.fail(f"its tokenizer.ggml.{name}_token_id is {id_!r}, and it has {len(tokens)} tokens")
    return tokens[id_]


def _config(gguf: GgufFile, tokens: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for key, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        token = _token(gguf, tokens, name)
        if token is not None:
            config[f"{key}_token"] = token
    template = gguf.metadata.get("tokenizer.chat_template")
    if isinstance(template, str):
        config["chat_template"] = template
    return config


def _document(tokens: list[str], types: list[int], **parts: Any) -> dict[str, Any]:
    added = [
        {
            "id": id_,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind in (_CONTROL, _UNKNOWN),
        }
        for id_, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) and token
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "post_processor": None,
    } | parts


def _merges(gguf: GgufFile, known: set[str]) -> list[list[str]]:
    merges = []
    for merge in gguf.value("tokenizer.ggml.merges", list):
        # A piece may be, or begin with, a space only where spaces stand for themselves: not in these vocabularies.
        left, _, right = merge.partition(" ") if isinstance(merge, str) else ("", "", "")
        if left not in known or right not in known or left + right not in known:
            raise gguf.fail(f"its merge {str(merge)[:60]!r} is not of two tokens that make a third")
        merges.append([left, right])
    return merges


def _byte_level_document(gguf: GgufFile, tokens: list[str], types: list[int]) -> dict[str, Any]:
    pre = gguf.value("tokenizer.ggml.pre", str, "gpt-2")
    if pre not in _PRE_TOKENIZERS:
        raise gguf.fail(f"its tokenizer.ggml.pre is {pre[:60]!r}; known are {', '.join(sorted(_PRE_TOKENIZERS))}")
    steps = _PRE_TOKENIZERS[pre]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": pre in _IGNORE_MERGES,
        "vocab": {token: id_ for id_, token in enumerate(tokens)},
        "merges": _merges(gguf, set(tokens)),
    }
    return _document(
        tokens,
        types,
        normalizer=None,
        pre_tokenizer=steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps},
        decoder=_byte_level(True),
        model=model,
    )


def _piece_document(gguf: GgufFile, kind: str, tokens: list[str], types: list[int]) -> dict[str, Any]:
    if kind == "gemma4":
        merges = _merges(gguf, set(tokens))
    else:
        merges = _merges_of_scores(gguf, tokens, types)
    replace: dict[str, Any] = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    decoders: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    normalizer: dict[str, Any] = replace
    if kind == "llama" and gguf.value("tokenizer.ggml.add_space_prefix", bool, True):
        normalizer = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": _SPACE}, replace]}
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": _token(gguf, tokens, "unknown"),
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": True,
        "ignore_merges": False,
        "vocab": {token: id_ for id_, token in enumerate(tokens)},
        "merges": merges,
    }
    return _document(
        tokens,
        types,
        normalizer=normalizer,
        pre_tokenizer=None,
        decoder={"type": "Sequence", "decoders": decoders},
        model=model,
    )


def _merges_of_scores(gguf: GgufFile, tokens: list[str], types: list[int]) -> list[list[str]]:
    """The merges that a SentencePiece vocabulary implies: any two pieces whose text together is a piece.

    Those that make the piece with the highest score come first, as in transformers' convert_slow_tokenizer.
    """
    scores = gguf.value("tokenizer.ggml.scores", list)
    if len(scores) != len(tokens):
        raise gguf.fail("its tokenizer.ggml.scores do not fit its tokens")
    ids = {token: id_ for id_, token in enumerate(tokens) if types[id_] not in (_UNKNOWN, _CONTROL, _BYTE)}
    merges = []
    for token, id_ in ids.items():
        for cut in range(1, min(len(token), 256)):
            left, right = ids.get(token[:cut]), ids.get(token[cut:])
            if left is not None and right is not None:
                merges.append((-scores[id_], left, right, token, cut))
    merges.sort()
    return [[token[:cut], token[cut:]] for _, _, _, token, cut in merges]
