"""The CPU check against the kernel's own list of what this CPU has."""

import platform
from pathlib import Path

import _cpu_features_testing as cpu
import pytest

# What /proc/cpuinfo calls them. -msse4.2 stands for popcnt too, and fp16 is scalar and vector.
KERNEL_NAMES = {
    "x86_64": {
        "sse4.2": {"sse4_2", "popcnt"},
        "avx": {"avx"},
        "avx2": {"avx2"},
        "fma": {"fma"},
        "f16c": {"f16c"},
        "bmi2": {"bmi2"},
    },
    "aarch64": {
        "dotprod": {"asimddp"},
        "fp16": {"fphp", "asimdhp"},
    },
}.get(platform.machine(), {})


def kernel_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return set(value.split())
    pytest.skip("/proc/cpuinfo lists no features")


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux only")
@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_agrees_with_the_kernel(name):
    assert cpu.host_has_cpu_feature(name) == (KERNEL_NAMES[name] <= kernel_flags())


@pytest.mark.parametrize("name", ["", "avx512f", "AVX2", "avx2 ", "no-such-feature"])
def test_an_unknown_name_is_not_there(name):
    assert not cpu.host_has_cpu_feature(name)


def test_what_is_missing_is_named_once_each():
    # On a machine that builds and tests this level, nothing is missing; elsewhere each name is one
    # that the host answered no to.
    missing = [name for name in cpu.missing_cpu_features().split(", ") if name]
    assert len(missing) == len(set(missing))
    assert all(not cpu.host_has_cpu_feature(name) for name in missing)
