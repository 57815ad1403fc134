"""Greedy text is the same, whatever way leads to it: the table of docs/llama_cpp.md, each cell with each drafter.

llama and gemma3 are the models that remember (make_recall_gguf.py): a lost, moved or foreign KV cache shows in their
text. gemma4 is the one with an MTP head, whose text shows the last token only.
"""

from __future__ import annotations

import os
import threading

import pytest

from tests.llama_cpp import recall
from tests.support import abi, models

# What has to be remembered is within a sliding window of 32, and the prompt longer than a chunk of 512.
COUNT = 20
PROMPT = "xyz" * 250 + "xxAxxabc"


def bundle(architecture: str):
    return models.bundle("tiny_gemma4_mtp") if architecture == "gemma4" else recall.bundle(architecture)


DRAFTERS = {
    "no drafter": None,
    "a drafter that is right": lambda: models.text_model("tiny_llama_cycle"),
    "a drafter that is wrong": lambda: models.text_model("tiny_llama_random"),
    "an MTP head": lambda: models.drafter("tiny_gemma4_mtp"),
    "an MTP head that is wrong": lambda: models.drafter("tiny_gemma4_mtp_wrong"),
}
CELLS = [
    (architecture, drafter)
    for architecture in ["llama", "gemma3", "gemma4"]
    for drafter in DRAFTERS
    if "MTP" not in drafter or architecture == "gemma4"
]


@pytest.fixture(params=CELLS, ids=lambda cell: ", ".join(cell))
def case(request):
    """A context, and the options of its streams."""
    architecture, drafter = request.param
    options = {"max_tokens": COUNT, "context_size": 1200}
    if drafter != "no drafter":
        options |= {"mtp_drafter_path": str(DRAFTERS[drafter]()), "draft_max": 4}
    with abi.Context(bundle(architecture)) as context:
        yield context, options


TEXT = recall.text("A", "c", COUNT)


def test_at_once(case):
    context, options = case
    with context.open(**options) as stream:
        stream.prefill(context.tokenize(PROMPT))
        assert stream.generate() == TEXT
        assert (stream.stats()["drafted_tokens"] > 0) == ("draft_max" in options)


def test_in_pieces(case):
    context, options = case
    prompt = context.tokenize(PROMPT)
    with context.open(**options) as stream:
        for begin, end in [(0, 1), (1, 300), (300, 301), (301, len(prompt) - 1), (len(prompt) - 1, len(prompt))]:
            stream.prefill(prompt[begin:end])
        assert stream.generate() == TEXT


def test_a_prefix_that_is_kept(case):
    context, options = case
    prompt = context.tokenize(PROMPT)
    with context.open(**options) as stream:
        stream.prefill(prompt + context.tokenize("qrs", add_special=False))
        stream.next()
        kept = stream.reset_keep(len(prompt) - 2)
        assert kept == len(prompt) - 2
        stream.prefill(prompt[kept:])
        assert stream.generate() == TEXT


def test_a_warm_cache(case):
    context, options = case
    prompt = context.tokenize(PROMPT)
    for reused in (0, len(prompt) - 1):
        with context.open(prompt_cache_key="key", slot_id=0, **options) as stream:
            stream.prefill(prompt)
            assert stream.stats()["reused_tokens"] == reused
            assert stream.generate() == TEXT


def test_a_slot(case, tmp_path):
    context, options = case
    prompt = context.tokenize(PROMPT)
    slot = os.fsencode(tmp_path / "slot")
    with context.open(**options) as stream:
        stream.prefill(prompt[:-2])
        assert stream.library.call("llm_stream_save_slot", stream.handle, slot) == abi.OK
    with context.open(**options) as stream:
        stream.prefill(context.tokenize("Bzzz"))
        stream.next()
        assert stream.library.call("llm_stream_restore_slot", stream.handle, slot) == abi.OK
        stream.prefill(prompt[-2:])
        assert stream.stats()["prompt_tokens"] == 2
        assert stream.generate() == TEXT


@pytest.mark.parametrize("delay_s", [0.0, 0.002, 0.01])
def test_a_reset_after_a_cancel(case, delay_s):
    context, options = case
    prompt = context.tokenize(PROMPT)
    with context.open(**options) as stream:
        cancel = threading.Timer(delay_s, stream.cancel)
        cancel.start()
        try:  # whatever the cancel hits
            stream.prefill(prompt)
            stream.generate()
        except abi.Error as error:
            assert error.status == abi.CANCELLED
        cancel.join()
        stream.reset()
        stream.prefill(prompt)
        assert stream.generate() == TEXT
