"""The rules of docs/backends.md: what answers a bundle, and what is said of those that do not."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from _selector_testing import Factory, FixedFactory, Outcome, Registry, add_from_threads, decide
from hypothesis import example, given, settings
from hypothesis import strategies as st


class Fake(Factory):
    """A backend whose answers are given, or raised where they are exceptions; it notes what it was asked."""

    def __init__(self, name, *, serves=True, available=True, honours=(True, ""), rank=0, explanation="", remark=""):
        super().__init__(name)
        self.answers = {
            "can_serve": serves,
            "available": available,
            "can_honour": honours,
            "preference_rank": rank,
            "explain": explanation,
            "remark": remark,
        }
        self.asked = []

    def _answer(self, question):
        self.asked.append(question)
        answer = self.answers[question]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def can_serve(self, bundle_dir):
        self.bundle_dir = bundle_dir
        return self._answer("can_serve")

    def available(self):
        return self._answer("available")

    def can_honour(self, grammar):
        self.grammar = grammar
        return self._answer("can_honour")

    def preference_rank(self):
        return self._answer("preference_rank")

    def explain(self, bundle_dir):
        return self._answer("explain")

    def remark(self, bundle_dir):
        return self._answer("remark")


class Deadly(Fake):
    """A backend whose runtime ends the process that looks for it."""

    def available(self):
        os.abort()


# As in the default build: two backends are known, neither is compiled in.
KNOWN = [
    ("litert-lm", "--//platforms:enable_litert", False),
    ("mlx-coreml", "--//platforms:enable_mlx", False),
]


def registry_of(*factories):
    registry = Registry()
    for factory in factories:
        registry.add(factory)
    return registry


def decide_among(*factories, **request):
    """The answer to a request of which the registered backends are `factories`."""
    return decide(registry_of(*factories), **request)


def chosen(answer):
    """The name of the backend that answers; None after an error."""
    [*names] = [row.name for row in answer.backends if row.chosen]
    assert len(names) == (answer.outcome != Outcome.ERROR)
    assert (answer.outcome == Outcome.FACTORY) == (answer.factory is not None)
    assert (answer.outcome == Outcome.ERROR) == (answer.error != "")
    return names[0] if names else None


def row_of(answer, name):
    [row] = [row for row in answer.backends if row.name == name]
    return row


# -- No backend is named --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("has_gguf", "ranks", "expected"),
    [
        (True, {}, "llama.cpp"),
        (False, {}, "llama.cpp"),
        (True, {"npu": 100}, "npu"),
        (True, {"npu": 1}, "npu"),
        (True, {"npu": 0}, "llama.cpp"),
        (True, {"npu": -1}, "llama.cpp"),
        (False, {"npu": 0}, "npu"),
        (False, {"npu": -1}, "npu"),
        (False, {"npu": -(2**31)}, "npu"),
        (True, {"npu": 2**31 - 1}, "npu"),
        (True, {"cpu": -1, "gpu": 20, "npu": 100}, "npu"),
        (True, {"npu": 100, "gpu": 20, "cpu": -1}, "npu"),
        (True, {"first": 50, "second": 50}, "first"),
        (True, {"second": 50, "first": 50}, "second"),
        (False, {"low": -1, "first": 0, "second": 0}, "first"),
    ],
)
def test_highest_rank_wins_over_llama_cpps_zero(has_gguf, ranks, expected):
    answer = decide_among(*[Fake(name, rank=rank) for name, rank in ranks.items()], has_gguf=has_gguf)
    assert chosen(answer) == expected


@pytest.mark.parametrize(
    "no", [{"serves": False}, {"available": False}, {"honours": (False, "it has no grammar")}], ids=lambda no: [*no][0]
)
@pytest.mark.parametrize("has_gguf", [True, False])
def test_a_no_of_any_kind_rules_out(no, has_gguf):
    assert chosen(decide_among(Fake("npu", rank=100, **no), has_gguf=has_gguf, grammar="x")) == "llama.cpp"
    answer = decide_among(Fake("npu", rank=100, **no), Fake("gpu", rank=20), has_gguf=has_gguf, grammar="x")
    assert chosen(answer) == "gpu"


def test_the_factory_that_was_registered_is_returned():
    factory = Fake("npu", rank=1)
    assert decide_among(factory).factory is factory


def test_questions_come_in_order_and_end_with_the_first_no():
    unfit = Fake("unfit", serves=False)
    absent = Fake("absent", available=False)
    picky = Fake("picky", honours=(False, "no grammar"))
    decide_among(unfit, absent, picky, grammar="root ::= [a-z]")
    assert unfit.asked == ["can_serve"]
    assert absent.asked == ["can_serve", "available"]
    assert picky.asked[:3] == ["can_serve", "available", "can_honour"]


def test_a_bundle_that_is_not_for_it_wakes_no_backend():
    assert chosen(decide_among(Deadly("npu", serves=False, rank=100))) == "llama.cpp"


def test_backends_get_the_bundle_and_the_config():
    factory = Fake("npu")
    decide_among(factory, bundle="/some/bündle", grammar="root ::= [a-z]")
    assert (factory.bundle_dir, factory.grammar) == ("/some/bündle", "root ::= [a-z]")


def test_without_a_config_there_is_nothing_to_honour():
    factory = Fake("npu", honours=(False, "no"), rank=1)
    assert chosen(decide_among(factory)) == "npu"
    assert "can_honour" not in factory.asked


# -- ELIZA_LLM_BACKEND names one ------------------------------------------------------------------

SPACES = " \t\r\n\v\f"


@pytest.mark.parametrize("value", [None, "", " ", SPACES])
def test_an_empty_value_is_no_value(value):
    assert chosen(decide_among(Fake("npu", rank=100), env=value)) == "npu"


@pytest.mark.parametrize("value", ["llama.cpp", "llamacpp", "llama", "LLAMA.CPP", "LlamaCpp", " Llama\n"])
@pytest.mark.parametrize("has_gguf", [True, False])
def test_every_spelling_of_llama_cpp_forces_it(value, has_gguf):
    npu = Deadly("npu", rank=100)
    assert chosen(decide_among(npu, env=value, has_gguf=has_gguf)) == "llama.cpp"
    assert npu.asked == []


@pytest.mark.parametrize("value", ["npu", "NPU", "  nPu\t", SPACES + "npu" + SPACES])
@pytest.mark.parametrize("rank", [-100, 0, 100])
def test_a_named_backend_answers_whatever_its_rank(value, rank):
    other = Deadly("gpu", rank=1000)
    assert chosen(decide_among(other, Fake("npu", rank=rank), env=value)) == "npu"
    assert other.asked == []


# "llama" is no prefix of ours to match, a NUL or a non-breaking space no space, "ı" no "i".
@pytest.mark.parametrize(
    "value",
    ["npux", "np", "n pu", "npu,gpu", "llama-cpp", "llama.cpp.", "\xa0npu", "lıtert-lm", "auto", "none", "0", "*"],
)
def test_an_unknown_value_is_an_error_that_names_it_and_the_valid_names(value):
    npu = Deadly("npu")
    answer = decide_among(npu, env=value, known=KNOWN)
    assert chosen(answer) is None
    assert f'ELIZA_LLM_BACKEND is "{value}"' in answer.error
    assert "Valid names: llama.cpp, npu." in answer.error
    assert "Not in this build: litert-lm, mlx-coreml." in answer.error
    assert npu.asked == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"a\x1b[31mb\nc\x7f", r'"a\x1b[31mb\x0ac\x7f"'),
        (b"\xff\xfe", '"\ufffd\ufffd"'),
        ("né".encode(), '"né"'),
        (b"x" * 500, f'"{"x" * 80}…"'),
        (("x" * 79 + "é" * 50).encode(), f'"{"x" * 79}…"'),
    ],
)
def test_a_strange_value_is_shown_fit_to_read(value, shown):
    answer = decide_among(env=value)
    assert f"ELIZA_LLM_BACKEND is {shown}, which names no backend" in answer.error
    assert answer.error.isprintable()


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("litert", "litert-lm"),
        ("LiteRT_LM", "litert-lm"),
        ("litert-ml", "litert-lm"),
        ("mlx", "mlx-coreml"),
        ("mlx-cormel", "mlx-coreml"),
        ("lama.cpp", "llama.cpp"),
        ("llama-cpp", "llama.cpp"),
    ],
)
def test_a_misspelt_value_gets_a_suggestion(value, meant):
    assert f"did you mean {meant}?" in decide_among(env=value, known=KNOWN).error


@pytest.mark.parametrize("value", ["cuda", "x", "--", "m", "vulkan", "tensorrt-llm" * 100])
def test_a_value_that_is_near_nothing_gets_no_suggestion(value):
    assert "did you mean" not in decide_among(env=value, known=KNOWN).error


@pytest.mark.parametrize("value", ["litert-lm", " LiteRT-LM "])
def test_a_backend_whose_gate_is_off_is_an_error_that_names_the_flag(value):
    answer = decide_among(env=value, known=KNOWN)
    assert chosen(answer) is None
    assert "litert-lm is not compiled into this build; --//platforms:enable_litert does that" in answer.error
    assert "Valid names: llama.cpp." in answer.error


@pytest.mark.parametrize(
    ("no", "words"),
    [
        ({"serves": False, "explanation": "no text/*.npu"}, 'npu cannot serve "/bundle": no text/*.npu'),
        ({"serves": False}, 'npu cannot serve "/bundle": it finds nothing in this bundle'),
        ({"available": False, "explanation": "no libnpu.so in /a, /b"}, "npu is not available: no libnpu.so in /a, /b"),
        ({"available": False}, "npu is not available: it is not available on this host"),
        ({"honours": (False, "gbnf_grammar")}, "npu cannot do what this stream asks for: gbnf_grammar"),
        ({"honours": (False, "")}, "cannot honour an option of this stream"),
    ],
)
def test_a_named_backend_that_says_no_is_an_error_with_its_reason(no, words):
    other = Deadly("gpu", rank=1000)
    answer = decide_among(Fake("npu", rank=100, **no), other, env=" npu", grammar="x")
    assert chosen(answer) is None
    assert words in answer.error
    assert 'ELIZA_LLM_BACKEND is " npu"' in answer.error
    assert "Valid names: llama.cpp, npu, gpu." in answer.error
    assert other.asked == []


# -- Factories are other people's code ------------------------------------------------------------


@pytest.mark.parametrize("question", ["serves", "available", "honours", "rank"])
@pytest.mark.parametrize("error", [RuntimeError("the driver is gone"), KeyboardInterrupt("the driver is gone")])
def test_an_exception_is_a_no_with_its_text_as_the_reason(question, error):
    broken = Fake("npu", **({"rank": 100} | {question: error}))
    answer = decide_among(broken, Fake("gpu", rank=20), grammar="x")
    assert chosen(answer) == "gpu"
    assert "the driver is gone" in row_of(answer, "npu").reason


@pytest.mark.parametrize("question", ["serves", "available", "honours"])
def test_an_exception_of_the_named_backend_is_an_error(question):
    answer = decide_among(Fake("npu", **{question: RuntimeError("the driver is gone")}), env="npu", grammar="x")
    assert chosen(answer) is None
    assert "the driver is gone" in answer.error


def test_a_named_backend_needs_no_rank():
    assert chosen(decide_among(Fake("npu", rank=RuntimeError("unknown device")), env="npu")) == "npu"


def test_an_explanation_that_fails_does_not_replace_the_no():
    answer = decide_among(Fake("npu", available=False, explanation=RuntimeError("oops")), env="npu")
    assert "npu is not available: it is not available on this host" in answer.error


# -- A bundle that is none ------------------------------------------------------------------------


@pytest.mark.parametrize("env", [None, "llama.cpp", "npu", "nonsense"])
def test_a_bundle_that_cannot_be_read_is_the_error_and_nobody_is_asked(env):
    npu = Deadly("npu")
    answer = decide_among(npu, env=env, bundle_error="/bundle: no such directory")
    assert answer.error == "/bundle: no such directory"
    assert chosen(answer) is None
    assert npu.asked == []


# -- The registry ---------------------------------------------------------------------------------


def test_registration_keeps_order_and_is_idempotent_by_name():
    registry = Registry()
    first = Fake("npu", rank=1)
    assert registry.add(first)
    assert registry.add(Fake("gpu"))
    assert not registry.add(first)
    assert not registry.add(Fake("npu", rank=2))
    assert not registry.add(Fake("NPU", rank=3))
    assert registry.names() == ["npu", "gpu"]
    assert decide(registry).factory is first


@pytest.mark.parametrize("name", ["", "llama", "llama.cpp", "LlamaCpp"])
def test_a_nameless_backend_and_a_second_llama_cpp_are_not_registered(name):
    registry = Registry()
    assert not registry.add(Fake(name))
    assert not registry.add(None)
    assert registry.names() == []


def test_concurrent_registration_and_selection():
    factories = [FixedFactory(f"backend-{i}", rank=1) for i in range(31)]
    for _ in range(100):  # the first registrations are what races
        registry = Registry()
        assert add_from_threads(registry, factories, 4)
        assert sorted(registry.names()) == sorted(factory.name for factory in factories)


def test_python_backends_can_be_asked_from_many_threads():
    registry = registry_of(Fake("npu", rank=1), Fake("gpu", rank=2))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: chosen(decide(registry)), range(200)))
    assert set(answers) == {"gpu"}


# -- The report -----------------------------------------------------------------------------------


def report_among(*factories, **request):
    return json.loads(decide_among(*factories, report=True, **request).to_json())


def test_report_has_a_row_for_every_backend_with_its_reason():
    report = report_among(
        Fake("npu", rank=100),
        Fake("gpu", rank=20),
        Fake("absent", available=False, explanation="no libabsent.so"),
        Fake("unfit", serves=False, rank=7, explanation="no text/*.unfit"),
        known=KNOWN,
    )
    assert report == {
        "env": {"name": "ELIZA_LLM_BACKEND", "value": None},
        "bundle": "/bundle",
        "chosen": "npu",
        "error": None,
        "backends": [
            {
                "name": "llama.cpp",
                "compiled": True,
                "available": True,
                "can_serve": True,
                "rank": 0,
                "chosen": False,
                "reason": "its rank 0 is below that of npu (100)",
            },
            {
                "name": "npu",
                "compiled": True,
                "available": True,
                "can_serve": True,
                "rank": 100,
                "chosen": True,
                "reason": "the highest rank (100) of those that can serve this bundle",
            },
            {
                "name": "gpu",
                "compiled": True,
                "available": True,
                "can_serve": True,
                "rank": 20,
                "chosen": False,
                "reason": "its rank 20 does not exceed that of npu (100)",
            },
            {
                "name": "absent",
                "compiled": True,
                "available": False,
                "can_serve": True,
                "rank": None,
                "chosen": False,
                "reason": "no libabsent.so",
            },
            {
                "name": "unfit",
                "compiled": True,
                "available": True,
                "can_serve": False,
                "rank": 7,
                "chosen": False,
                "reason": "no text/*.unfit",
            },
            {
                "name": "litert-lm",
                "compiled": False,
                "available": None,
                "can_serve": None,
                "rank": None,
                "chosen": False,
                "reason": "not compiled into this build; --//platforms:enable_litert does that",
            },
            {
                "name": "mlx-coreml",
                "compiled": False,
                "available": None,
                "can_serve": None,
                "rank": None,
                "chosen": False,
                "reason": "not compiled into this build; --//platforms:enable_mlx does that",
            },
        ],
    }


@pytest.mark.parametrize("rank", [100, -1])
def test_report_has_the_remark_of_a_backend_that_could_answer(rank):
    slow = Fake("npu", rank=rank, remark="on the cpu, since: no NPU")
    report = report_among(slow, Fake("gone", available=False, remark=AssertionError("asked of a no")))
    assert report["backends"][1]["reason"].endswith("; on the cpu, since: no NPU")
    assert "asked" not in report["backends"][2]["reason"]
    # Nobody reads it at an open.
    decide_among(slow)
    assert slow.asked.count("remark") == 1


@pytest.mark.parametrize("env", [None, "npu"])
def test_a_remark_that_fails_is_none(env):
    report = report_among(Fake("npu", rank=100, remark=RuntimeError("oops")), env=env)
    assert report["chosen"] == "npu"
    assert "oops" not in report["backends"][1]["reason"]


def test_report_keeps_the_order_of_its_keys():
    text = decide_among(report=True).to_json()
    assert text.startswith('{"env":{"name":"ELIZA_LLM_BACKEND","value":null},"bundle":"/bundle","chosen":"llama.cpp",')


def test_report_under_a_hard_select_asks_the_named_backend_alone():
    other = Deadly("gpu", rank=1000)
    report = report_among(Fake("npu"), other, env="NPU")
    assert (report["env"]["value"], report["chosen"]) == ("NPU", "npu")
    gpu = report["backends"][2]
    assert (gpu["available"], gpu["can_serve"], gpu["reason"]) == (None, None, "ELIZA_LLM_BACKEND does not name it")
    assert other.asked == []


def test_report_of_an_error_holds_the_message_an_open_would_fail_with():
    for request in ({"env": "nonsense"}, {"env": "litert-lm"}, {"env": "npu"}, {"bundle_error": "no such directory"}):
        npu = Fake("npu", available=False, explanation="no libnpu.so")
        report = report_among(npu, known=KNOWN, **request)
        assert report["chosen"] is None
        assert report["error"] == decide_among(npu, known=KNOWN, **request).error
        assert all(row["reason"] for row in report["backends"])


def test_report_says_where_llama_cpp_is_only_what_is_left():
    report = report_among(Fake("npu", serves=False), has_gguf=False)
    assert report["chosen"] == "llama.cpp"
    assert "holds no text/*.gguf" in report["backends"][0]["reason"]
    assert report["backends"][0]["can_serve"] is False


def test_report_is_json_whatever_the_bytes():
    report = report_among(Fake("npu", serves=False), env=b"\xff", bundle=b"/b\xfe")
    assert (report["env"]["value"], report["bundle"]) == ("\ufffd", "/b\ufffd")


# -- Any registry ---------------------------------------------------------------------------------


def oracle(env, has_gguf, backends):
    """The rules once more, in ten lines. Of (name, serves, available, honours, rank); "error" for an error."""
    value = (env or "").strip(SPACES).lower()
    if value in ("llama.cpp", "llamacpp", "llama"):
        return "llama.cpp"
    firsts = [b for i, b in enumerate(backends) if b[0].lower() not in [c[0].lower() for c in backends[:i]]]
    fit = [b for b in firsts if all(b[1:4])]
    if value:
        return next((b[0] for b in fit if b[0].lower() == value), "error")
    best = max(fit, key=lambda b: b[4], default=None)  # the first of equals
    return best[0] if best and (best[4] > 0 or not has_gguf) else "llama.cpp"


NAMES = ["npu", "NPU", "gpu", "Gpu", "tpu", "litert-lm", "mlx-coreml"]
ALIASES = ["llama.cpp", "llamacpp", "llama"]
ranks = st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1)
backends = st.lists(
    st.tuples(st.sampled_from(NAMES), st.booleans(), st.booleans(), st.booleans(), ranks),
    max_size=6,
)
spaces = st.text(SPACES, max_size=2)
words = st.sampled_from(["", *ALIASES, *NAMES]).flatmap(lambda word: st.sampled_from([word, word.upper()]))
values = st.none() | st.tuples(spaces, words | st.text("npuglam.- ", max_size=5), spaces).map("".join)


@given(env=values, has_gguf=st.booleans(), specifications=backends)
@example(env=None, has_gguf=False, specifications=[])
@settings(max_examples=500)
def test_decisions_are_the_oracles(env, has_gguf, specifications):
    fakes = [
        Fake(name, serves=serves, available=available, honours=(honours, "no"), rank=rank)
        for name, serves, available, honours, rank in specifications
    ]
    answer = decide_among(*fakes, env=env, has_gguf=has_gguf, grammar="x")
    assert (chosen(answer) or "error") == oracle(env, has_gguf, specifications)
    # Nobody is asked for nothing: unnamed, up to the first no; under a name, the named one alone.
    value = (env or "").strip(SPACES).lower()
    for fake, (name, serves, available, *_) in zip(fakes, specifications, strict=True):
        if value and value != name.lower():
            assert fake.asked == []
        elif not value:
            needed = ["can_serve"] + ["available"] * serves + ["can_honour", "preference_rank"] * (serves and available)
            assert fake.asked in ([], needed)  # []: the second of its name
    # A report is the same decision.
    report = decide_among(*fakes, env=env, has_gguf=has_gguf, grammar="x", report=True)
    assert chosen(report) == chosen(answer)
    assert report.error == answer.error
    assert all(row.reason for row in [*report.backends, *answer.backends])
