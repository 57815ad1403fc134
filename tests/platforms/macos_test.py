"""What a build for macOS would compile and link, without an SDK."""

from __future__ import annotations

import os
import re

from tests.support import commands
from tests.support.runfile import runfile

TARGET = "--target=arm64-apple-macosx14.0"

COMMANDS = commands.read()
COMPILATIONS = [command for command in COMMANDS if command.mnemonic == "CppCompile"]
SOURCES = {command.source for command in COMPILATIONS}
(LINK,) = [command for command in COMMANDS if command.outputs[0].endswith("/libelizainference.dylib")]


def _sources(pattern: str) -> set[str]:
    return {source for source in SOURCES if re.match(pattern, source)}


def test_the_gates():
    assert len(_sources("native/backends/mlx/")) >= 3
    assert _sources("native/backends/litert_lm/") == set()


def test_macos_14_is_the_oldest():
    assert runfile(os.environ["MINIMUM_MACOS"]).read_text().strip() == "14.0"
    for command in [*COMPILATIONS, LINK]:
        assert [argument for argument in command.arguments if argument.startswith("--target=")] == [TARGET]


def test_what_headers_have_besides_x_open():
    with_x_open = [command for command in COMPILATIONS if "-D_XOPEN_SOURCE=600" in command.arguments]
    assert len(with_x_open) >= 10
    assert [command.source for command in with_x_open if "-D_DARWIN_C_SOURCE" not in command.arguments] == []


def test_metal():
    assert len(_sources("ggml/src/ggml-metal/.*cpp")) >= 3
    assert len(_sources("ggml-metal-embed/all.S")) == 1
    objective_c = [command for command in COMPILATIONS if "objective-c" in command.arguments]
    assert {command.source for command in objective_c} == _sources("ggml-metal-.*-m.c")
    assert len(objective_c) == 2
    # A second ggml in the process has classes of other names.
    assert all("-DGGMLMetalClass=ElizaGGMLMetalClass" in command.arguments for command in objective_c)
    # And none that would bring windows into a host that has none.
    frameworks = {argument.rpartition(",")[2] for argument in LINK.arguments if "-framework" in argument}
    assert frameworks == {"Foundation", "Metal"}


def test_the_shaders_need_no_other_file():
    files = [runfile(path) for path in os.environ["SHADERS"].split()]
    shaders = {file.stem: file.read_text() for file in files if file.suffix == ".metal"}
    assert len(shaders) >= 30
    for name, text in shaders.items():
        assert "kernel void " in text, name
        # There are no headers where they are compiled. One is named where another branch would be taken.
        assert re.findall(r'#include "(?!ggml-common\.h")|#pragma once|__embed', text) == [], name
    (assembly,) = [file.read_text() for file in files if file.suffix == ".S"]
    assert {name for name in re.findall(r"^_ggml_metallib_(\w+)_start:", assembly, re.MULTILINE)} == shaders.keys()


def test_what_clang_lacks_on_linux():
    # ggml asks which macOS it is on.
    assert len([argument for argument in LINK.arguments if argument.endswith("/availability.o")]) == 1
    # By the path alone it does not take the linker for LLVM's, and names no platform to it.
    assert "-fuse-ld=lld" in LINK.arguments
    # What Bazel writes for macOS is libtool's command line, which ar does not take.
    archives = [command for command in COMMANDS if command.mnemonic == "CppArchive"]
    assert len(archives) >= 10
    assert all(command.arguments[0].endswith("/bin/llvm-libtool-darwin") for command in archives)
    assert all("-static" in command.arguments for command in archives)
    # math.h of Apple's and float.h of LLVM's, in C++20.
    cxx = [command for command in COMPILATIONS if re.search(r"\.(cc|cpp)$", command.source)]
    assert [command.source for command in cxx if "-fno-cxx-modules" not in command.arguments] == []


def test_how_it_is_linked():
    arguments = " ".join(LINK.arguments)
    assert "-Wl,-install_name,@rpath/libelizainference.dylib" in LINK.arguments
    assert re.search(r"-Wl,-exported_symbols_list,\S+/exports\.symbols", arguments)
    # libmlx lies beside it.
    assert {argument for argument in LINK.arguments if "rpath," in argument} == {"-Wl,-rpath,@loader_path"}
    assert "-Wl,-z" not in arguments
    assert "version-script" not in arguments


def test_nothing_of_this_machine():
    assert [(command.outputs[0], command.absolute_paths) for command in COMMANDS if command.absolute_paths] == []
