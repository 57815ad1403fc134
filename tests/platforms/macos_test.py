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


def test_metal():
    assert len(_sources("ggml/src/ggml-metal/.*cpp")) >= 3
    assert len(_sources("ggml-metal-embed/all.S")) == 1
    objective_c = [command for command in COMPILATIONS if "objective-c" in command.arguments]
    assert {command.source for command in objective_c} == _sources("ggml-metal-.*-m.c")
    assert len(objective_c) == 2
    # A second ggml in the process has classes of other names.
    assert all("-DGGMLMetalClass=ElizaGGMLMetalClass" in command.arguments for command in objective_c)
    frameworks = {argument.rpartition(",")[2] for argument in LINK.arguments if "-framework" in argument}
    assert {"Foundation", "Metal"} <= frameworks


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
