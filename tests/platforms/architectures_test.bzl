"""//platforms:cuda_architectures, as nvcc is told it."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//third_party/cuda:cuda_library.bzl", "architecture_flags")

def _architectures_test_impl(ctx):
    env = unittest.begin(ctx)

    # Machine code for each, and for the newest the code that drivers compile for what is newer still.
    asserts.equals(env, [
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_90,code=compute_90",
    ], architecture_flags("75,90"))
    asserts.equals(env, [
        "-gencode=arch=compute_120a,code=sm_120a",
        "-gencode=arch=compute_120a,code=compute_120a",
    ], architecture_flags(" 120a"))
    return unittest.end(env)

architectures_test = unittest.make(_architectures_test_impl)
