"""The programs in examples/ build against the unpacked SDK, each by its own build system, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dist import sdk
from tests.support import models
from tests.support.runfile import runfile

PROMPT = "abc"
# What the tiny model says: as many tokens as the examples ask for.
SAID = models.alphabet(PROMPT, 64)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    return sdk.unpack(tmp_path_factory.mktemp("sdk"))


@pytest.fixture
def example(tmp_path):
    """Copies an example out of the runfiles; returns its folder."""

    def copy(name: str) -> Path:
        return shutil.copytree(runfile(f"examples/{name}"), tmp_path / name)

    return copy


def _run(*command: object, folder: Path, **variables: object) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=kept | {name: str(value) for name, value in variables.items()},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_cmake(example, unpacked):
    folder = example("c")
    _run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={unpacked}", folder=folder)
    _run("cmake", "--build", "build", folder=folder)
    assert _run("build/generate", models.bundle("tiny_llama_cycle"), PROMPT, folder=folder) == SAID
    # It takes the library along, and looks for it nowhere but beside itself.
    _run("cmake", "--install", "build", "--prefix", "installed", folder=folder)
    (folder / "installed").rename(folder / "moved")
    assert _run("moved/bin/generate", models.bundle("tiny_llama_cycle"), PROMPT, folder=folder) == SAID


def test_the_readmes_cmake(tmp_path, unpacked):
    (code,) = re.findall(r"^```cmake\n(.*?)^```$", runfile("README.md").read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "app.c").write_text(
        "#include <eliza-inference-ffi.h>\n#include <stdio.h>\n\n"
        "int main(void) { return puts(eliza_inference_abi_version()) < 0; }\n"
    )
    lists = ["cmake_minimum_required(VERSION 3.16)", "project(app C)", "add_executable(app app.c)", code]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lists))
    _run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={unpacked}", folder=tmp_path)
    _run("cmake", "--build", "build", folder=tmp_path)
    assert _run("build/app", folder=tmp_path) == "15\n"


def test_cmake_wants_another_version(example, unpacked):
    folder = example("c")
    lists = folder / "CMakeLists.txt"
    for wanted, found in [("0.1.0 EXACT", True), ("0.2", False), ("1.0", False)]:
        lists.write_text(f"cmake_minimum_required(VERSION 3.16)\nproject(p C)\nfind_package(elizainference {wanted} CONFIG)\n"
                         "file(WRITE ${CMAKE_BINARY_DIR}/found ${elizainference_FOUND})\n")
        _run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={unpacked}", folder=folder)
        assert (folder / "build/found").read_text() == str(int(found)), wanted
        shutil.rmtree(folder / "build")


def test_pkg_config(example, unpacked):
    folder = example("c")
    _run("make", folder=folder, PKG_CONFIG_PATH=unpacked / "lib/pkgconfig")
    assert _run("./generate", models.bundle("tiny_llama_cycle"), PROMPT, folder=folder) == SAID


def test_node(example, unpacked):
    folder = example("node")
    # As `npm install` leaves it.
    (folder / "node_modules").symlink_to(runfile(os.environ["KOFFI"]).parent.parent)
    library = unpacked / "lib/libelizainference.so"
    node = runfile(os.environ["NODE"])
    assert _run(node, "generate.mjs", library, models.bundle("tiny_llama_cycle"), PROMPT, folder=folder) == SAID


@pytest.mark.skipif(not shutil.which("swift-build"), reason="there is no swift-build on PATH")
def test_swift(example, unpacked):
    folder = example("swift")
    _run("swift-build", folder=folder, PKG_CONFIG_PATH=unpacked / "lib/pkgconfig", HOME=folder)
    generate = [".build/debug/generate", models.bundle("tiny_llama_cycle"), PROMPT]
    assert _run(*generate, folder=folder, LD_LIBRARY_PATH=unpacked / "lib") == SAID


def test_an_error_is_told(example, unpacked):
    folder = example("node")
    (folder / "node_modules").symlink_to(runfile(os.environ["KOFFI"]).parent.parent)
    library = unpacked / "lib/libelizainference.so"
    command = [runfile(os.environ["NODE"]), "generate.mjs", library, folder / "nowhere", PROMPT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"{folder}/nowhere" in done.stderr
    done = subprocess.run(command[:-1], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("usage: ")
