"""What a build for Android would compile and link, without an NDK."""

from __future__ import annotations

import os
import re

import pytest

from tests.support import commands

VARIANT = os.environ["VARIANT"]
ARM64 = VARIANT == "android_npu"
TARGET = "--target=%s-linux-android26" % ("aarch64" if ARM64 else "x86_64")
SYSROOT = "--sysroot=tests/platforms/llvm/sysroot"

COMMANDS = commands.read()
COMPILATIONS = [command for command in COMMANDS if command.mnemonic == "CppCompile"]
SOURCES = {command.source for command in COMPILATIONS}
(LINK,) = [command for command in COMMANDS if command.outputs[0].endswith("/libelizainference.so")]


def _sources(pattern: str) -> set[str]:
    return {source for source in SOURCES if re.match(pattern, source)}


def test_it_is_the_whole_library():
    for part in ("native/ffi/", "native/seam/", "native/backends/llama_cpp/", "ggml/src/ggml-cpu/", "src/llama"):
        assert len(_sources(part)) >= 3, part


def test_the_gates():
    assert bool(_sources("native/backends/litert_lm/")) == ARM64
    assert _sources(".*mlx") == set()
    assert [argument for argument in LINK.arguments if re.search("mlx|litert-lm", argument, re.IGNORECASE)] == []


def test_every_file_is_for_this_architecture_and_api_level():
    for command in [*COMPILATIONS, LINK]:
        targets = [argument for argument in command.arguments if argument.startswith("--target=")]
        assert targets == [TARGET], command
        assert SYSROOT in command.arguments


def test_no_file_or_flag_is_another_architectures():
    other = "x86" if ARM64 else "arm"
    assert _sources(rf".*/arch/{other}/") == set()
    assert len(_sources(".*/arch/%s/" % ("arm" if ARM64 else "x86"))) >= 2
    foreign = re.compile(r"-m(avx|sse|fma|f16c|bmi)" if ARM64 else r"-m(arch|cpu)=(arm|native)")
    assert [(command.source, arg) for command in COMPILATIONS for arg in command.arguments if foreign.match(arg)] == []


def test_the_cpu_level_is_that_of_the_kernels_alone():
    level = re.compile(r"-m(arch|cpu)=.*|-m(avx|fma|f16c|bmi|sse).*")
    with_level = {command.source: set(filter(level.fullmatch, command.arguments)) for command in COMPILATIONS}
    of_phones = {source: {"-march=armv8.2-a+dotprod+fp16"} for source in _sources("ggml/src/ggml-cpu/")}
    # An emulator has what every Android on x86-64 has, and clang takes that without being told.
    assert {source: flags for source, flags in with_level.items() if flags} == (of_phones if ARM64 else {})


def test_nothing_of_this_machine():
    assert [(command.outputs[0], command.absolute_paths) for command in COMMANDS if command.absolute_paths] == []


@pytest.mark.parametrize(
    "flag",
    [
        "-Wl,-z,max-page-size=16384",
        "-Wl,-z,defs",
        "-Wl,-z,relro,-z,now",
        "-Wl,-soname,libelizainference.so",
        "-nostdlib++",
        "-lc++_static",
        "-lc++abi",
    ],
)
def test_how_it_is_linked(flag):
    assert flag in LINK.arguments


def test_what_it_is_linked_with():
    assert any(argument.startswith("-Wl,--version-script=") for argument in LINK.arguments)
    # Android has no libpthread and no librt, and another libstdc++ than ours is meant by that name.
    libraries = {argument for argument in LINK.arguments if re.match("-l[a-z]", argument)}
    assert libraries <= {"-lc++_static", "-lc++abi", "-ldl", "-lm", "-llog"}
    assert [argument for argument in LINK.arguments if "rpath" in argument] == []
