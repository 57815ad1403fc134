"""Clients in C and C++, compiled outside of Bazel's rules with nothing but the header and the library."""

import os
import re

import pytest

from tests.clients.compiled_client import compile_client, run
from tests.support import models
from tests.support.runfile import runfile

CYCLE = "tiny_llama_cycle"
UTF8 = "tiny_llama_utf8"


@pytest.fixture(scope="module")
def c_client(tmp_path_factory):
    source = runfile("tests/clients/client.c")
    return compile_client(tmp_path_factory.mktemp("c"), source, "cc", ["-std=c99"])


@pytest.fixture(scope="module")
def jni_bridge(tmp_path_factory):
    source = runfile("tests/clients/jni_bridge.cc")
    return compile_client(tmp_path_factory.mktemp("jni"), source, "c++", ["-std=c++17"])


@pytest.mark.parametrize("model", [CYCLE, "tiny_gemma3_cycle"])
@pytest.mark.parametrize("max_tokens", [1, 12, 100])
def test_c(c_client, model, max_tokens):
    assert run(c_client, models.bundle(model), "abc", max_tokens) == models.alphabet("abc", max_tokens)


def test_c_for_abi_12(tmp_path):
    source, library = runfile("tests/clients/client.c"), runfile(os.environ["LIBRARY_12"])
    program = compile_client(tmp_path, source, "cc", ["-std=c99", "-DELIZA_INFERENCE_ABI_VERSION=12"], library)
    assert run(program, models.bundle(CYCLE), "abc", 12) == models.alphabet("abc", 12)


def test_jni(jni_bridge):
    assert run(jni_bridge, models.bundle(CYCLE), "abc", 12) == models.alphabet("abc", 12)


def test_jni_gets_whole_characters(jni_bridge):
    assert run(jni_bridge, models.bundle(UTF8), "a", 64) == models.utf8("a", 32)


def test_jni_gets_replacement_characters_for_malformed_bytes(jni_bridge):
    expected = "\ufffdb\ufffdc\ufffdd\ufffd"
    assert run(jni_bridge, models.bundle("tiny_llama_malformed"), "a", 64) == expected


@pytest.mark.parametrize(("compiler", "suffix", "standard"), [("cc", ".c", "c99"), ("c++", ".cc", "c++17")])
def test_the_headers_own_example(tmp_path, compiler, suffix, standard):
    header = runfile("native/include/eliza-inference-ffi.h").read_text()
    example = re.search(r"( \*   char\* error = NULL;\n.*?destroy\(context\);\n)", header, re.DOTALL)
    code = re.sub(r"^ \* ?", "", example[1], flags=re.MULTILINE).replace("path/to/bundle", str(models.bundle(CYCLE)))
    source = tmp_path / f"example{suffix}"
    source.write_text(
        f"#include <eliza-inference-ffi.h>\n#include <stdio.h>\n\nint main(void) {{\n{code}  return 0;\n}}\n"
    )
    folder = tmp_path / "client"
    folder.mkdir()
    # "Hello", and then its max_tokens.
    assert run(compile_client(folder, source, compiler, [f"-std={standard}"])) == models.alphabet("o", 64)
