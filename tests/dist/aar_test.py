"""What is in the AAR, and what its libraries owe whoever loads them.

Run on an AAR of libraries for Linux, which needs no NDK, and on //dist:android_aar where there is one.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from xml.etree import ElementTree

import pytest

from dist import pins
from tests.support.elf import ANDROID, GLIBC, Elf
from tests.support.runfile import runfile

AAR = runfile(os.environ["AAR"])
# {ABI: how ELF files call it}
ABIS = {"arm64-v8a": "AArch64", "x86_64": "Advanced Micro Devices X86-64"}
# The largest pages of the phones that the libraries are for; the stand-ins are for Linux.
NEEDED, PAGE = (ANDROID, 0x4000) if os.environ["SYSTEM"] == "android" else (GLIBC, 0x1000)

PREFAB = "prefab/modules/elizainference"
CLASSES = ["Chunk", "Engine", "InferenceException", "Native", "Stream", "StreamOptions"]
CONTENTS = [
    "AndroidManifest.xml",
    "LICENSE",
    "THIRD_PARTY_NOTICES.txt",
    "classes.jar",
    *(f"jni/{abi}/{library}" for abi in ABIS for library in ("libelizainference.so", "libelizainference_jni.so")),
    f"{PREFAB}/include/eliza-inference-ffi.h",
    *(f"{PREFAB}/libs/android.{abi}/{file}" for abi in ABIS for file in ("abi.json", "libelizainference.so")),
    f"{PREFAB}/module.json",
    "prefab/prefab.json",
    "proguard.txt",
    "sbom.spdx.json",
]
# What the manifest asks Android for: LiteRT-LM opens them by these names.
VENDORS = [
    "libvndksupport.so",
    "libOpenCL.so",
    "libOpenCL-car.so",
    "libOpenCL-pixel.so",
    "libcdsprpc.so",
    "libedgetpu_litert.so",
    "libneuronusdk_adapter.mtk.so",
    "libneuron_sys_util.mtk.so",
]

VERSION = re.search(r'VERSION = "(.+)"', runfile("dist/version.bzl").read_text())[1]
JAVA = runfile("dist/android/java/ai/eliza/inference/Native.java").read_text()
BRIDGE = runfile("dist/android/jni.cc").read_text()


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aar")
    with zipfile.ZipFile(AAR) as aar:
        aar.extractall(folder)
    return folder


def test_contents():
    with zipfile.ZipFile(AAR) as aar:
        assert aar.namelist() == CONTENTS


def test_the_manifest(unpacked):
    android = "{http://schemas.android.com/apk/res/android}"
    manifest = ElementTree.parse(unpacked / "AndroidManifest.xml").getroot()
    assert manifest.get("package") == "ai.eliza.inference"
    assert manifest.find("uses-sdk").get(f"{android}minSdkVersion") == "26"
    entries = manifest.findall("application/uses-native-library")
    assert [entry.get(f"{android}name") for entry in entries] == VENDORS
    # An app with this AAR installs on a device that has none of them.
    assert {entry.get(f"{android}required") for entry in entries} == {"false"}


# -- C++ ------------------------------------------------------------------------------------------


def test_prefab(unpacked):
    package = json.loads((unpacked / "prefab/prefab.json").read_text())
    assert package == {"schema_version": 2, "name": "elizainference", "version": VERSION, "dependencies": []}
    assert json.loads((unpacked / PREFAB / "module.json").read_text()) == {"export_libraries": [], "android": {}}
    for abi in ABIS:
        described = json.loads((unpacked / PREFAB / f"libs/android.{abi}/abi.json").read_text())
        assert described == {"abi": abi, "api": 26, "ndk": 28, "stl": "none", "static": False}


def test_the_header_is_the_header(unpacked):
    header = runfile("native/include/eliza-inference-ffi.h").read_text()
    assert (unpacked / PREFAB / "include/eliza-inference-ffi.h").read_text() == header


@pytest.mark.parametrize("abi", ABIS)
def test_one_library_for_cpp_and_for_java(unpacked, abi):
    linked = unpacked / PREFAB / f"libs/android.{abi}/libelizainference.so"
    assert linked.read_bytes() == (unpacked / f"jni/{abi}/libelizainference.so").read_bytes()


@pytest.mark.parametrize("abi", ABIS)
def test_what_a_loader_sees_of_the_library(unpacked, abi):
    library = Elf(unpacked / f"jni/{abi}/libelizainference.so")
    assert library.machine == ABIS[abi]
    lines = [line.split() for line in runfile("native/ffi/exports.txt").read_text().splitlines() if line[:1] != "#"]
    library.check({name for _, name in lines}, NEEDED, PAGE)
    assert ".symtab" not in library.sections


# -- Java -----------------------------------------------------------------------------------------


def _natives() -> set[str]:
    found = re.findall(r"static native [\w\[\]]+ (\w+)\(", JAVA)
    assert len(found) > 10
    return set(found)


@pytest.mark.parametrize("abi", ABIS)
def test_what_a_loader_sees_of_the_bridge(unpacked, abi):
    bridge = Elf(unpacked / f"jni/{abi}/libelizainference_jni.so")
    library = Elf(unpacked / f"jni/{abi}/libelizainference.so")
    assert bridge.machine == ABIS[abi]
    assert "libelizainference.so" in bridge.needed
    bridge.check(
        {f"Java_ai_eliza_inference_Native_{name}" for name in _natives()} | {"JNI_OnLoad", "JNI_OnUnload"},
        re.compile(rf"{NEEDED.pattern}|libelizainference\.so"),
        PAGE,
        soname="libelizainference_jni.so",
        beside=library.exports,
    )


def test_the_classes_are_for_java_8_and_not_for_android_alone(unpacked):
    with zipfile.ZipFile(unpacked / "classes.jar") as jar:
        assert jar.namelist() == [f"ai/eliza/inference/{name}.class" for name in CLASSES]
        for name in jar.namelist():
            data = jar.read(name)
            assert int.from_bytes(data[6:8], "big") == 52  # Java 8
            assert b"android/" not in data


def test_proguard_keeps_what_the_bridge_looks_for(unpacked):
    rules = (unpacked / "proguard.txt").read_text()
    looked_for = {name.replace("/", ".") for name in re.findall(r'"(ai/eliza/inference/\w+)"', BRIDGE)}
    assert looked_for == {"ai.eliza.inference.Chunk", "ai.eliza.inference.InferenceException"}
    for name in looked_for:
        assert re.search(rf"-keep class {name} {{\s+<init>\(", rules)
    assert re.search(r"class ai\.eliza\.inference\.Native {\s+native <methods>;", rules)


# -- Licenses and the bill of materials -----------------------------------------------------------


def test_license_and_notices(unpacked):
    assert (unpacked / "LICENSE").read_text() == runfile("LICENSE").read_text()
    text = (unpacked / "THIRD_PARTY_NOTICES.txt").read_text()
    for head in ("llama.cpp", "JSON for Modern C++", "libc++"):
        assert re.search(rf"^{re.escape(head)}.* \(.+\)$", text, re.MULTILINE)
    assert "LLVM Exceptions to the Apache 2.0 License" in text


def test_bill_of_materials(unpacked):
    bill = json.loads((unpacked / "sbom.spdx.json").read_text())
    assert bill["name"] == f"libelizainference-android-{VERSION}"
    hashes = {
        file["fileName"]: {checksum["algorithm"]: checksum["checksumValue"] for checksum in file["checksums"]}
        for file in bill["files"]
    }
    compiled = [path for path in CONTENTS if path == "classes.jar" or path.startswith("jni/")]
    assert sorted(hashes) == sorted(f"./{path}" for path in compiled)
    for path in compiled:
        assert hashes[f"./{path}"]["SHA256"] == Elf(unpacked / path).sha256

    pinned = pins.read(runfile("third_party/extensions.bzl"))
    expected = {pin.sha256 for name in os.environ["PINS"].split() for pin in pinned[name]}
    listed = {checksum["checksumValue"] for package in bill["packages"] for checksum in package.get("checksums", [])}
    # An NDK of this machine's own has no hash, and the bill says so.
    unpinned = [package for package in bill["packages"] if "not pinned" in package.get("comment", "")]
    assert listed == expected - ({pin.sha256 for pin in pinned["android_ndk"]} if unpinned else set())
