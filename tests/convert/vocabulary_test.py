"""A converted vocabulary: the ids of llama.cpp on the GGUF file, of `tokenizers` on the tokenizer.json, and ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from _hf_tokenizer_testing import HfTokenizer
from elizainference.convert._gguf import GgufFile
from elizainference.convert._tokenizer import tokenizer_files
from tokenizers import Tokenizer

from tests.support import abi, models
from tests.support.runfile import runfile
from tests.text import hf_files


@pytest.fixture(scope="module", params=["tiny_llama_random", "demo"])
def vocabulary(request, tmp_path_factory):
    """(the bundle, ours, theirs)"""
    if request.param == "demo":
        bundle = runfile(os.environ["DEMO_MANIFEST"]).parent
    else:
        bundle = models.bundle(request.param)
    directory = tmp_path_factory.mktemp(request.param)
    with GgufFile(next((bundle / "text").glob("*.gguf"))) as gguf:
        for name, document in tokenizer_files(gguf).items():
            (directory / name).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return bundle, HfTokenizer(str(directory)), Tokenizer.from_file(str(directory / "tokenizer.json"))


def test_the_package_reads_the_same(vocabulary):
    _, ours, theirs = vocabulary
    for parse_special in (True, False):
        theirs.encode_special_tokens = not parse_special
        for text in hf_files.HARD:
            wanted = theirs.encode(text, add_special_tokens=False).ids
            assert ours.tokenize(text, False, parse_special) == wanted, text


def test_llama_cpp_reads_the_same(vocabulary):
    bundle, ours, _ = vocabulary
    with abi.Context(bundle) as context:
        for text in hf_files.HARD:
            if "\U00011de0" in text:
                continue  # digits of a Unicode that llama.cpp does not know yet
            for add_special in (True, False):
                assert ours.tokenize(text, add_special, True) == context.tokenize(text, add_special, True), text


def test_texts_of_ids(vocabulary):
    bundle, ours, _ = vocabulary
    with abi.Context(bundle) as context:
        for text in hf_files.HARD:
            ids = ours.tokenize(text, True, True)
            # The C ABI's text has no NULs.
            shown = ours.detokenize(ids).decode(errors="replace").replace("\0", "\ufffd")
            assert shown == context.detokenize(ids), text


def test_metadata(vocabulary):
    bundle, ours, _ = vocabulary
    with abi.Context(bundle) as context:
        for key in ("tokenizer.chat_template", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"):
            theirs = context.library.call_for_string("model_meta", context.handle, key.encode())
            assert ours.metadata(key) == theirs


def test_the_files_stand_for_themselves(vocabulary):
    assert Path(vocabulary[0]).is_dir()
    assert vocabulary[1].size == vocabulary[2].get_vocab_size()
