"""Whether a model can run on a host, without the runtime: the ladder of accelerators, and the model's header."""

from __future__ import annotations

from pathlib import Path

import _litert_lm_testing as litert
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import litertlm_writer
from tests.support import models

PIXEL = {"android": True, "manufacturer": "Google", "model": "Tensor G4"}
SNAPDRAGON = {"android": True, "manufacturer": "QTI", "model": "SM8750"}
DIMENSITY = {"android": True, "manufacturer": "Mediatek", "model": "MT6989"}
EXYNOS = {"android": True, "manufacturer": "Samsung", "model": "s5e9945"}

DISPATCH = {
    "Google": "libLiteRtDispatch_GoogleTensor.so",
    "QTI": "libLiteRtDispatch_Qualcomm.so",
    "Mediatek": "libLiteRtDispatch_MediaTek.so",
}
OPENCL = "/system/lib64/libOpenCL.so"


def _present(*arguments, **host) -> list[str]:
    return [rung.accelerator for rung in litert.ladder(*arguments, **host) if rung.present]


# -- The ladder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [PIXEL, SNAPDRAGON, DIMENSITY], ids=lambda host: host["manufacturer"])
def test_an_npu_is_there_with_its_vendors_dispatch_library(host):
    library = DISPATCH[host["manufacturer"]]
    assert _present("auto", **host) == ["cpu"]
    for file in (f"/system/lib64/{library}", f"/app/lib/{library}"):
        rungs = litert.ladder("", **host, files=[file], directories=["/nowhere", "/app/lib"])
        assert [(rung.accelerator, rung.present) for rung in rungs] == [("npu", True), ("gpu", False), ("cpu", True)]
        assert rungs[0].device.startswith("npu (")
        assert host["model"] in rungs[0].device
        assert rungs[0].dispatch_dir == str(Path(file).parent)


@pytest.mark.parametrize("host", [PIXEL, SNAPDRAGON, DIMENSITY], ids=lambda host: host["manufacturer"])
def test_another_vendors_dispatch_library_is_none(host):
    others = [f"/system/lib64/{DISPATCH[name]}" for name in DISPATCH if name != host["manufacturer"]]
    (npu,) = litert.ladder("npu", **host, files=others, directories=["/app/lib"])
    assert not npu.present
    assert DISPATCH[host["manufacturer"]] in npu.why
    assert "/app/lib" in npu.why


def test_a_soc_of_another_vendor_has_no_npu():
    (npu,) = litert.ladder("npu", **EXYNOS, files=[f"/system/lib64/{name}" for name in DISPATCH.values()])
    assert not npu.present
    assert "the SoC is Samsung s5e9945, and LiteRT-LM serves those of Google Tensor, Qualcomm and MediaTek" in npu.why


def test_the_ladder_of_android_ends_on_the_cpu():
    assert _present("auto", **EXYNOS, files=[OPENCL]) == ["gpu", "cpu"]
    assert [rung.rank for rung in litert.ladder("auto", **EXYNOS)] == [100, 20, -1]


@pytest.mark.parametrize("setting", ["", "auto"])
def test_elsewhere_nothing_is_used_unasked(setting):
    assert litert.ladder(setting, files=["libvulkan.so.1"]) == []
    assert "ELIZA_LITERT_ACCELERATOR=cpu" in litert.no_accelerator([])


@pytest.mark.parametrize("setting", ["npu", "gpu", "cpu"])
def test_what_is_named_is_all_there_is(setting):
    for host in ({}, PIXEL):
        assert [rung.accelerator for rung in litert.ladder(setting, **host)] == [setting]


def test_a_gpu_is_there_with_its_drivers_loader():
    assert _present("gpu", android=True) == []
    for name in ("libOpenCL.so", "libOpenCL-pixel.so", "libvulkan.so"):
        assert _present("gpu", android=True, files=[f"/system/lib64/{name}"]) == ["gpu"]


@pytest.mark.parametrize("setting", ["CPU", "tpu", " cpu", "cpu,gpu"])
def test_other_settings_are_errors(setting):
    with pytest.raises(litert.Error, match="ELIZA_LITERT_ACCELERATOR is"):
        litert.ladder(setting)


def test_the_environment(monkeypatch):
    monkeypatch.setenv("ELIZA_LITERT_ACCELERATOR", "cpu")
    (rung,) = litert.ladder_of_this_host()
    assert (rung.present, rung.device) == (True, "cpu")


# -- The model and the ladder ---------------------------------------------------------------------


def _place(backends: list[str], *arguments, soc: str = "", **host):
    rung, why = litert.place(litert.ModelHeader(backends, soc), litert.ladder(*arguments, **host))
    return (rung and rung.accelerator), why


PHONE = {**SNAPDRAGON, "files": [f"/system/lib64/{DISPATCH['QTI']}", OPENCL]}


@pytest.mark.parametrize(
    ("backends", "expected"),
    [(["npu"], "npu"), (["cpu", "gpu"], "gpu"), (["cpu"], "cpu"), (["gpu", "npu"], "npu"), (["cpu", "npu"], "npu")],
)
def test_a_model_runs_on_the_best_rung_that_it_is_made_for(backends, expected):
    assert _place(backends, "auto", **PHONE) == (expected, "")


@pytest.mark.parametrize(
    ("backends", "setting"), [(["cpu", "gpu"], "npu"), (["npu"], "cpu"), (["npu"], "gpu"), (["gpu_artisan"], "auto")]
)
def test_a_model_that_is_made_for_something_else(backends, setting):
    accelerator, why = _place(backends, setting, **PHONE)
    assert accelerator is None
    assert f"the model is made for {', '.join(backends)}, and what may be used here is " in why


def test_a_model_compiled_for_another_soc():
    for soc, expected in [("SM8750", "npu"), ("sm_8750", "npu"), ("SM8650", None)]:
        accelerator, why = _place(["npu"], "npu", soc=soc, **PHONE)
        assert accelerator == expected
        assert (soc in why) == (expected is None)


@pytest.mark.parametrize(
    ("backends", "host", "device", "reasons"),
    [
        (["npu", "gpu"], {**EXYNOS, "files": [OPENCL]}, "gpu", ["no NPU: the SoC is Samsung s5e9945"]),
        (["cpu", "gpu"], PHONE, "gpu", ["the model is not made for the npu"]),
        (["npu", "cpu"], SNAPDRAGON, "cpu", ["no NPU: Qualcomm's dispatch library", "no GPU: none of its driver's"]),
        (["npu", "cpu"], PIXEL | {"files": PHONE["files"]}, "cpu", ["no NPU: Google Tensor's", "not made for the gpu"]),
    ],
)
def test_an_accelerator_that_is_passed_over_is_not_passed_over_in_silence(backends, host, device, reasons):
    why = litert.passed_over(litert.ModelHeader(backends), litert.ladder("auto", **host))
    assert why.startswith(f"on the {device}, since: ")
    assert all(reason in why for reason in reasons)


def test_a_model_for_another_soc_is_told_why_it_does_not_run_on_the_npu():
    ladder = litert.ladder("auto", **PHONE)
    why = litert.passed_over(litert.ModelHeader(["npu", "gpu"], "SM8650"), ladder)
    assert why == "on the gpu, since: the model is compiled for another SoC than SM8750"


def test_there_is_nothing_to_tell_of_the_best():
    for backends, setting in [(["npu"], "auto"), (["gpu"], "gpu"), (["npu"], "cpu")]:
        assert litert.passed_over(litert.ModelHeader(backends), litert.ladder(setting, **PHONE)) == ""


# -- Headers --------------------------------------------------------------------------------------


def _model(path: Path, *sections: tuple[int, dict[str, str]], ends: int = 0) -> Path:
    path.write_bytes(litertlm_writer.dumps(*sections, ends=ends))
    return path


def test_the_header_of_the_tiny_model():
    header = litert.read_model_header(str(models.bundle("tiny_gemma3_litertlm") / "text" / "tiny_gemma3.litertlm"))
    assert (header.backends, header.soc) == (["cpu", "gpu"], "")


@pytest.mark.parametrize(
    ("items", "backends", "soc"),
    [
        ({}, ["cpu", "gpu"], ""),
        ({"model_type": "tf_lite_prefill_decode"}, ["cpu", "gpu"], ""),
        ({"backend_constraint": "npu"}, ["npu"], ""),
        ({"backend_constraint": "CPU, gpu ,npu"}, ["cpu", "gpu", "npu"], ""),
        ({"backend_constraint": "npu", "soc_model": "SM8750"}, ["npu"], "SM8750"),
        ({"soc_name": "Tensor_G5", "backend_constraint": " "}, ["cpu", "gpu"], "Tensor_G5"),
    ],
)
def test_a_constraint_is_read(tmp_path, items, backends, soc):
    other = {"model_type": "tf_lite_embedder", "backend_constraint": "cpu"}
    header = litert.read_model_header(str(_model(tmp_path / "m.litertlm", (3, items), (3, other), (5, {}))))
    assert (header.backends, header.soc) == (backends, soc)


def test_a_file_without_a_model_for_text(tmp_path):
    for sections in ([], [(5, {})], [(3, {"model_type": "tf_lite_vision_encoder"})]):
        with pytest.raises(litert.Error, match="holds no model that generates text"):
            litert.read_model_header(str(_model(tmp_path / "m.litertlm", *sections)))


def test_a_section_beyond_the_end(tmp_path):
    with pytest.raises(litert.Error, match="is truncated: .* a section up to byte 99999"):
        litert.read_model_header(str(_model(tmp_path / "m.litertlm", (3, {}), ends=99999)))


@given(st.data())
def test_any_bytes_in_a_header_are_a_model_or_an_error(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("header")
    good = _model(folder / "m.litertlm", (3, {"backend_constraint": "npu", "soc_model": "SM8750"})).read_bytes()
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    path = folder / "n.litertlm"
    path.write_bytes(bytes(changed[: data.draw(st.integers(0, len(changed)))]))
    try:
        assert litert.read_model_header(str(path)).backends
    except litert.Error as error:
        assert str(path) in str(error)


# -- What is said of a model that does not load ---------------------------------------------------


@pytest.mark.parametrize(
    ("accelerator", "reason", "status", "advice"),
    [
        # Named in the reason, and not to blame.
        ("cpu", "INVALID_ARGUMENT: not a model: {cache}/a.litertlm", -3, "take a model that this LiteRT-LM supports"),
        ("cpu", "INVALID_ARGUMENT: unsupported op", -3, "take a model that this LiteRT-LM supports"),
        ("gpu", "UNKNOWN: ", -4, "set ELIZA_LITERT_ACCELERATOR to another accelerator"),
        ("cpu", "RESOURCE_EXHAUSTED: 7 GB", -5, "free some memory"),
        ("gpu", "INTERNAL: mmap: Cannot allocate memory", -5, "free some memory"),
        ("cpu", "INVALID_ARGUMENT: Cache directory does not exist: {nowhere}", -2, "ELIZA_LITERT_CACHE_DIR"),
    ],
)
def test_the_advice_fits_what_is_known(monkeypatch, tmp_path, accelerator, reason, status, advice):
    nowhere = tmp_path / "nowhere"
    monkeypatch.setenv("ELIZA_LITERT_CACHE_DIR", str(nowhere if "{nowhere}" in reason else tmp_path))
    reason = reason.format(cache=tmp_path, nowhere=nowhere)
    (rung,) = litert.ladder(accelerator, files=[OPENCL, "libvulkan.so.1"])
    said, message = litert.load_failure(rung, reason)
    assert said == status
    assert message.startswith(
        f"LiteRT-LM cannot load the model file /models/a.litertlm on the {accelerator} ({reason}); "
    )
    assert advice in message
