"""llm_backend_select and the report as the FFI calls them: the real environment, registry and folders."""

from __future__ import annotations

import json

import _selector_testing as seam
import pytest

NAME = "test-npu"


class Backend(seam.Factory):
    """The process-wide registry keeps what it has: one backend for all tests, which says no unless a test is on."""

    on = False
    asked = 0

    def can_serve(self, bundle_dir):
        self.asked += 1
        return self.on

    def available(self):
        return self.on

    def preference_rank(self):
        return 100


BACKEND = Backend(NAME)
seam.register(BACKEND)


@pytest.fixture
def backend(monkeypatch):
    """The backend, saying yes."""
    monkeypatch.setattr(BACKEND, "on", True)
    return BACKEND


@pytest.fixture(autouse=True)
def unset_variable(monkeypatch):
    monkeypatch.delenv("ELIZA_LLM_BACKEND", raising=False)


@pytest.fixture
def bundle(tmp_path):
    """A bundle with one GGUF, as far as a selection looks."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "model.gguf").touch()
    return tmp_path


# -- The three results ----------------------------------------------------------------------------


def test_null_and_no_error_is_llama_cpp(bundle):
    assert seam.select_backend(str(bundle)) == (None, None)


def test_a_factory_and_no_error_is_that_backend(bundle, backend):
    factory, error = seam.select_backend(str(bundle))
    assert factory is backend
    assert error is None


def test_null_and_an_error_is_a_failure(bundle, backend, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", "mlxx")
    factory, error = seam.select_backend(str(bundle))
    assert factory is None
    assert error.startswith('ELIZA_LLM_BACKEND is "mlxx", which names no backend')
    assert NAME in error


def test_without_out_error_nothing_is_selected(bundle, backend):
    asked = backend.asked
    assert seam.select_backend_without_out_error(str(bundle)) is None
    assert backend.asked == asked


# -- The environment ------------------------------------------------------------------------------


def test_the_variable_is_read_at_each_selection(bundle, backend, monkeypatch):
    for value, expected in [("llama.cpp", None), (f" {NAME.upper()} ", backend), ("", backend), ("LLAMA", None)]:
        monkeypatch.setenv("ELIZA_LLM_BACKEND", value)
        assert seam.select_backend(str(bundle)) == (expected, None)


# -- The bundle -----------------------------------------------------------------------------------


def test_the_bundle_is_probed_at_each_selection(tmp_path, monkeypatch):
    class LowRank(Backend):
        on = False

        def preference_rank(self):
            return -1

    low = LowRank("test-cpu")
    seam.register(low)
    monkeypatch.setattr(low, "on", True)
    # A rank below llama.cpp's wins while there is no GGUF.
    assert seam.select_backend(str(tmp_path)) == (low, None)
    (tmp_path / "text").mkdir()
    assert seam.select_backend(str(tmp_path)) == (low, None)
    (tmp_path / "elsewhere.gguf").touch()
    (tmp_path / "text" / "model.gguf").symlink_to(tmp_path / "elsewhere.gguf")
    assert seam.select_backend(str(tmp_path)) == (None, None)
    (tmp_path / "text" / "model.gguf").unlink()
    assert seam.select_backend(str(tmp_path)) == (low, None)


def test_a_missing_bundle_is_an_error_that_names_it(tmp_path, backend):
    missing = tmp_path / "missing"
    factory, error = seam.select_backend(str(missing))
    assert factory is None
    assert str(missing) in error
    assert seam.select_backend(None) == (None, "The bundle directory is null. Pass the path of a bundle.")


def test_a_broken_manifest_is_an_error_that_names_it(bundle, backend):
    (bundle / "eliza-1.manifest.json").write_text("{")
    factory, error = seam.select_backend(str(bundle))
    assert factory is None
    assert "eliza-1.manifest.json" in error
    report = json.loads(seam.backend_report(str(bundle)))
    assert (report["chosen"], report["error"]) == (None, error)


# -- The built-in table ---------------------------------------------------------------------------


def test_builtins_are_known_and_registered_once_where_compiled(bundle):
    for _ in range(3):
        seam.register_builtins()
    names = seam.registered()
    assert len(names) == len(set(names))
    rows = {row["name"]: row for row in json.loads(seam.backend_report(str(bundle)))["backends"]}
    for name in ("litert-lm", "mlx-coreml"):
        assert rows[name]["compiled"] == (name in names)
        assert rows[name]["reason"]


def test_the_report_tells_what_an_open_would_do(bundle, backend, monkeypatch):
    monkeypatch.setenv("ELIZA_LLM_BACKEND", f"{NAME}\n")
    report = json.loads(seam.backend_report(str(bundle)))
    assert report["env"] == {"name": "ELIZA_LLM_BACKEND", "value": f"{NAME}\n"}
    assert report["bundle"] == str(bundle)
    assert (report["chosen"], report["error"]) == (NAME, None)


# -- What a backend gets without asking -----------------------------------------------------------


@pytest.mark.parametrize("function", [seam.save_slot_default, seam.restore_slot_default])
def test_a_session_without_slots_says_so(function):
    status, error = function()
    assert status == -2  # ELIZA_ERR_INVALID_ARG
    assert "backend cannot" in error


def test_a_session_without_seed_says_so():
    assert seam.set_seed_default() == -1  # ELIZA_ERR_NOT_IMPLEMENTED


def test_a_factory_without_the_optional_answers_honours_and_explains_nothing(bundle, monkeypatch):
    class Minimal(seam.Factory):
        def can_serve(self, bundle_dir):
            return True

        def available(self):
            return True

    registry = seam.Registry()
    registry.add(Minimal("minimal"))
    answer = seam.decide(registry, has_gguf=False, grammar="x", report=True)
    assert (answer.factory.name, answer.backends[1].rank, answer.backends[1].can_honour) == ("minimal", 0, True)
