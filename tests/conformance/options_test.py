"""The stream's options: honoured, refused in words, or listed as ignored."""

from __future__ import annotations

import math
from ctypes import byref, c_float, c_int, c_void_p

import pytest

from tests.conformance.common import PROMPT, answer, refused, run
from tests.support import abi

# What is not there for this backend, or wrong.
_REFUSALS = (abi.INVALID_ARG, abi.NOT_IMPLEMENTED, abi.BUNDLE_INVALID)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", -1),
        ("temperature", -0.5),
        ("temperature", float("inf")),
        ("temperature", float("nan")),
        ("top_k", -1),
        ("draft_min", -1),
        ("draft_max", -1),
        ("n_gpu_layers", -2),
        ("context_size", -1),
        ("slot_id", -2),
        ("repeat_penalty", float("inf")),
    ],
)
def test_a_value_that_cannot_be_meant(context, field, value):
    with refused(abi.INVALID_ARG, field):
        context.open(**{field: value})


def test_values_that_mean_off(context):
    expected = answer(context)
    for config in ({"top_p": 0.0}, {"top_p": float("nan")}, {"repeat_penalty": 0.0}, {"top_k": 0}, {"slot_id": -1}):
        assert answer(context, **config) == expected
    # Greedy takes the best, whatever is cut off behind it.
    assert answer(context, top_k=3, top_p=0.5) == expected


def test_a_seed_repeats(context, backend):
    if "seed" not in backend.can:
        with context.open(max_tokens=8, temperature=1.0, context_size=256) as stream:
            status = stream.library.llm_stream_set_seed(stream.handle, 1)
            assert status == abi.OK or status < 0
        return

    def text(seed: int) -> str:
        with context.open(max_tokens=30, temperature=1.5, context_size=256) as stream:
            assert stream.library.llm_stream_set_seed(stream.handle, seed) == abi.OK
            stream.prefill(context.tokenize(PROMPT))
            return stream.generate()

    assert text(1) == text(1)
    assert len({text(seed) for seed in (1, 2, 2**32 + 1, 2**63)}) > 1


def test_sampling_varies(context):
    texts = set()
    for _ in range(4):
        texts.add(answer(context, max_tokens=40, temperature=2.0)[1])
    assert len(texts) > 1


def test_top_k_of_one_is_greedy(context):
    assert answer(context, temperature=1.5, top_k=1) == answer(context)


def test_a_grammar_is_honoured_or_refused(context, backend):
    grammar = 'root ::= "yes" | "no"'
    if "grammar" not in backend.can:
        with refused(_REFUSALS, "grammar"):
            context.open(gbnf_grammar=grammar, context_size=256)
        return
    assert answer(context, gbnf_grammar=grammar)[1] in ("yes", "no")
    with refused(_REFUSALS, "grammar"):
        context.open(gbnf_grammar="root ::= nonsense (", context_size=256)


def test_a_drafter_is_honoured_or_refused(context, backend):
    with refused(_REFUSALS, "drafter" if "drafter" not in backend.can else "/no/such/drafter.gguf"):
        context.open(mtp_drafter_path="/no/such/drafter.gguf", draft_max=4, context_size=256)


def test_what_only_tunes_is_taken_or_listed(context):
    """The answer keeps its form: an open with these never fails, and what has no effect is said."""
    options = {"repeat_penalty": 1.3, "cache_type_k": "q8_0", "cache_type_v": "q8_0", "n_gpu_layers": -1}
    with context.open(max_tokens=8, context_size=256, **options) as stream:
        stream.prefill(context.tokenize(PROMPT))
        assert len(run(stream)[0]) == 8
        ignored = stream.stats()["ignored_options"]
        assert set(ignored) <= set(options)
        assert len(set(ignored)) == len(ignored)


def test_disable_thinking_changes_nothing(context):
    assert answer(context, disable_thinking=1) == answer(context)


def test_the_report_names_this_backend(context, backend):
    report = context.report()
    (row,) = [row for row in report["backends"] if row["name"] == backend.name]
    assert row["chosen"] and row["available"] and row["can_serve"]


def test_embeddings_or_a_reason(context, backend):
    out, dimension = (c_float * 1024)(), c_int()
    arguments = (context.handle, b"abc", 3, 1, out, len(out), byref(dimension))
    if "embed" in backend.can:
        assert context.library.call("embed", *arguments) == abi.OK
        assert math.hypot(*out[: dimension.value]) == pytest.approx(1, abs=1e-5)
        return
    with refused(abi.NOT_IMPLEMENTED):
        context.library.call("embed", *arguments)


def test_metadata(context):
    with refused(abi.INVALID_ARG, "no.such.key"):
        context.library.call("model_meta", context.handle, b"no.such.key", byref(c_void_p()))
