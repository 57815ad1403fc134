"""The libraries below //native.

    load("//native:library.bzl", "native_library")

    native_library(
        name = "utf8_gate",
        srcs = ["utf8-gate.cc"],
        hdrs = ["utf8-gate.h"],
    )
"""

load("@rules_cc//cc:defs.bzl", "cc_library")
load(":copts.bzl", "COPTS", "FEATURES")

def native_library(name, copts = [], **kwargs):
    """A cc_library, compiled as everything of ours is.

    Args:
      name: of the target.
      copts: compiler options besides copts.bzl's.
      **kwargs: srcs, hdrs, deps and the other attributes of cc_library.
    """
    cc_library(
        name = name,
        copts = COPTS + copts,
        features = FEATURES,
        # What is hidden from other libraries cannot be found in one of its own.
        linkstatic = True,
        **kwargs
    )
