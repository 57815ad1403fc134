"""Fuzz targets: a source with LLVMFuzzerTestOneInput, run by libFuzzer where it is told to, and replayed in every test run."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//native:copts.bzl", "COPTS", "FEATURES")
load("//tests:pytest.bzl", "pytest_test")

def fuzz_target(name, deps, src = None, corpus = None, changes = 2000, defines = [], data = [], env = {}, size = "small"):
    """Declares NAME_test, which replays the corpus of a target and small changes of it, and NAME_fuzz, for libFuzzer.

    NAME_fuzz needs clang, so it is built by name alone: `./bazelw build --config=fuzz //tests/fuzz:NAME_fuzz`.

    Args:
      name: name of the target.
      deps: what is fuzzed.
      src: its source; NAME.cc by default.
      corpus: the folder of its corpus, in corpus/; NAME by default.
      changes: how many changed inputs NAME_test makes of each file of the corpus.
      defines: macros.
      data: files that it reads.
      env: environment of NAME_test.
      size: of NAME_test.
    """
    src = src or name + ".cc"
    files = native.glob(["corpus/%s/*" % (corpus or name)])
    common = {
        "copts": COPTS,
        "features": FEATURES,
        "local_defines": defines,
        "target_compatible_with": ["@platforms//os:linux"],
        "deps": deps + [gate for gate in ["//native/text:utf8_gate"] if gate not in deps],
    }
    cc_binary(
        name = name + "_replay",
        srcs = [src, "input.h", "replay.cc"],
        **common
    )
    cc_binary(
        name = name + "_fuzz",
        srcs = [src, "input.h"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        **common
    )
    pytest_test(
        name = name + "_test",
        size = size,
        srcs = ["replay_test.py"],
        data = files + data + [":%s_replay" % name],
        env = {
            "CHANGES": str(changes),
            "CORPUS": " ".join(["$(rlocationpath %s)" % file for file in files]),
            "REPLAY": "$(rlocationpath :%s_replay)" % name,
        } | env,
        target_compatible_with = ["@platforms//os:linux"],
        deps = ["//tests/support:runfile"],
    )
