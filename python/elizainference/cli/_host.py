"""What this machine has: processor, memory, and the libraries that runtimes look for. Nothing is loaded or woken."""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

# Of the instruction sets there are, those that the kernels are built for or would use.
_FEATURES = {
    "x86_64": ["avx", "avx2", "fma", "f16c", "bmi2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8"],
    "aarch64": ["asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"],
}

# What the library's default build requires of an x86-64 processor (platforms/BUILD.bazel, cpu_level).
REQUIRED_X86 = {"avx2", "fma", "f16c", "bmi2"}

# {what it is for: names as the system's loader knows them}
_LIBRARIES = {
    "CUDA driver": ["cuda"],
    "Vulkan loader": ["vulkan"],
    "OpenCL loader": ["OpenCL"],
    "LiteRT-LM": ["litert-lm", "LiteRtLm"],
    "MLX": ["mlx"],
}


def host() -> dict[str, Any]:
    """The machine, as `eliza doctor --json` has it."""
    machine = platform.machine()
    return {
        "system": _system(),
        "machine": machine,
        "cpu": _cpu_name() or platform.processor() or machine,
        "features": _features(machine),
        "cores": os.cpu_count() or 1,
        "usable_cores": _usable_cores(),
        "cpu_quota": _cpu_quota(),
        "load": round(os.getloadavg()[0], 2),
        "memory_mib": _meminfo("MemTotal"),
        "available_mib": _available_mib(),
    }


def libraries() -> dict[str, str | None]:
    """Libraries that runtimes look for, by what the system's loader would find; None for those it would not."""
    found = {}
    for what, names in _LIBRARIES.items():
        found[what] = next((path for name in names if (path := ctypes.util.find_library(name))), None)
    if sys.platform == "darwin":
        found["Metal"] = ctypes.util.find_library("Metal")
    return found


def resident_mib() -> tuple[float, float]:
    """Memory that this process has resident now, and the most it had, in MiB."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / (1 << 20), peak
    except OSError:
        return peak, peak


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except (OSError, AttributeError):
        name = platform.system()
    return f"{name}, kernel {platform.release()}"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""


def _cpu_name() -> str | None:
    match = re.search(r"^(?:model name|Model)\s*: (.+)$", _cpuinfo(), re.MULTILINE)
    if match:
        return match[1].strip()
    return _sysctl("machdep.cpu.brand_string")


def _features(machine: str) -> list[str] | None:
    """Of _FEATURES, those that there are; None where the system does not tell."""
    known = _FEATURES.get({"arm64": "aarch64", "AMD64": "x86_64"}.get(machine, machine), [])
    match = re.search(r"^(?:flags|Features)\s*: (.+)$", _cpuinfo(), re.MULTILINE)
    if match:
        flags = set(match[1].split())
        return [name for name in known if name in flags]
    if sys.platform == "darwin":
        arm = {"asimddp": "FEAT_DotProd", "i8mm": "FEAT_I8MM", "bf16": "FEAT_BF16", "asimdhp": "FEAT_FP16"}
        return [name for name, feature in arm.items() if _sysctl(f"hw.optional.arm.{feature}") == "1"]
    return None


def _sysctl(name: str) -> str | None:
    if sys.platform != "darwin":
        return None
    done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_quota() -> float | None:
    """How many cores' time the process's cgroup may use; None: no limit."""
    for folder in _cgroup_folders():
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            return int(quota) / int(period)
    return None


def _cgroup_folders() -> list[Path]:
    """The process's cgroup and those above it, of cgroup v2."""
    root = Path("/sys/fs/cgroup")
    try:
        match = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    except OSError:
        return []
    folder = root / match[1] if match else root
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]


def _meminfo(key: str) -> int | None:
    try:
        match = re.search(rf"^{key}:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    if match:
        return int(match[1]) // 1024
    total = _sysctl("hw.memsize") if key == "MemTotal" else None
    return int(total) >> 20 if total else None


def _available_mib() -> int | None:
    """What can be had without swapping, and without going over a cgroup's limit."""
    left = [_meminfo("MemAvailable")]
    for folder in _cgroup_folders():
        try:
            limit = (folder / "memory.max").read_text().strip()
            if limit != "max":
                left.append((int(limit) - int((folder / "memory.current").read_text())) >> 20)
        except (OSError, ValueError):
            continue
    known = [value for value in left if value is not None]
    return min(known) if known else None
