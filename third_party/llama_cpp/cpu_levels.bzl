"""What ggml-cpu is compiled for: the values of //platforms:cpu_level on x86-64.

There is no dispatch at run time: code compiled for a feature dies of SIGILL on a CPU without it. So
ggml-cpu's files alone get these flags, and cpu-features.h asks the host before any of them runs.
"""

# gcc's and clang's -m names, which ggml's GGML_* macros and cpu-features.cc share. Haswell and Zen.
X86_64_DEFAULT = [
    "sse4.2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "bmi2",
]

# Armv8.2-A with the extensions that quantised matrix products live on: phones since 2018, all of
# Graviton 2, Ampere and Apple silicon.
ARM64_DEFAULT = [
    "dotprod",
    "fp16",
]
