"""Facts about the machine that a result was measured on: processor, memory, GPU, driver, C library, kernel.

Standard library only, Python 3.10 syntax; psutil and pynvml are used where they are installed.
A fact that cannot be known is ``None`` and ``unknown`` says why.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracelock.envs.container import container_facts
from tracelock.io import schema

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LD_PRELOAD")
_SMI_FIELDS = ("name", "uuid", "memory.total", "compute_cap", "driver_version")


def machine_facts(repository: Path | None = None) -> dict[str, Any]:
    """Return the document ``tracelock/machine/1``; sizes in bytes, clocks in MHz.

    Parameters
    ----------
    repository
        Folder whose git commit is recorded; left out if ``None``.
    """
    unknown: dict[str, str] = {}
    gpus, driver, cuda = _gpus(unknown)
    return {
        "schema": schema("machine"),
        "host": platform.node(),
        "cpu": _cpu(unknown),
        "ram_bytes": _ram_bytes(unknown),
        "gpus": gpus,
        "driver": driver,
        "cuda_driver": cuda,
        "glibc": glibc_version(),
        "kernel": platform.release(),
        "system": _system(),
        "container": container_facts(unknown),
        "architecture": platform.machine(),
        "variables": {name: os.environ[name] for name in _THREADS if name in os.environ},
        "git": git_state(repository) if repository else None,
        "virtual_packages": virtual_packages(cuda),
        "unknown": unknown,
    }


def glibc_version() -> str | None:
    """Return the version of the GNU C library, or ``None`` where another one is in use."""
    name, version = platform.libc_ver()
    return version if name == "glibc" else None


def virtual_packages(cuda: str | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return conda's virtual packages of this machine: name → version (``0`` where conda has none).

    ``CONDA_OVERRIDE_<NAME>`` is honoured as conda does: an empty value takes the package away.
    """
    found: dict[str, str | None] = {"__unix": "0", "__linux": _kernel_version(), "__glibc": glibc_version()}
    found |= {"__cuda": cuda, "__archspec": _architecture_level()}
    for name in found:
        override = environment.get(f"CONDA_OVERRIDE_{name[2:].upper()}")
        found[name] = found[name] if override is None else override or None
    return {name: version for name, version in sorted(found.items()) if version}


def git_state(folder: Path) -> dict[str, Any]:
    """Return commit and whether tracked files were changed since; both ``None`` outside a repository."""
    commit = _output("git", "-C", str(folder), "rev-parse", "HEAD")
    changed = _output("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    known = commit is not None
    return {"commit": commit, "dirty": bool(changed) if known and changed is not None else None}


def _cpu(unknown: dict[str, str]) -> dict[str, Any]:
    info = _cpuinfo()
    model = info.get("model name") or info.get("hardware") or platform.processor() or None
    if model is None:
        unknown["cpu.model"] = "neither /proc/cpuinfo nor the platform names the processor"
    physical, frequency = _cpu_by_psutil(unknown)
    return {
        "model": model,
        "cores_physical": physical,
        "cores_logical": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "max_mhz": frequency,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }


def _cpu_by_psutil(unknown: dict[str, str]) -> tuple[int | None, float | None]:
    try:
        import psutil
    except ImportError:
        unknown["cpu.cores_physical"] = unknown["cpu.max_mhz"] = "psutil is not installed in this environment"
        return None, None
    frequency: Any = psutil.cpu_freq()  # None in most virtual machines, whatever its types say
    if frequency is None or not frequency.max:
        unknown["cpu.max_mhz"] = "the kernel does not tell it, as in most virtual machines"
        return psutil.cpu_count(logical=False), None
    return psutil.cpu_count(logical=False), float(frequency.max)


def _cpuinfo() -> dict[str, str]:
    """Return the first processor's entries of ``/proc/cpuinfo``, keys in lower case."""
    pairs = (line.partition(":") for line in (_read("/proc/cpuinfo") or "").split("\n\n")[0].splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _ram_bytes(unknown: dict[str, str]) -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        unknown["ram_bytes"] = "the system does not tell its number of memory pages"
        return None


def _gpus(unknown: dict[str, str]) -> tuple[list[dict[str, Any]], str | None, str | None]:
    """Return GPUs, driver version and the CUDA version that the driver supports."""
    try:
        return _gpus_by_nvml()
    except Exception as error:  # pynvml raises many classes of its own; each only means that it cannot tell
        reason = f"{type(error).__name__}: {error}"
    gpus, driver, cuda = _gpus_by_smi()
    if not gpus:
        unknown["gpus"] = f"no GPU was found (NVML: {reason}; nvidia-smi: none)"
    driver = driver or _driver_of_kernel()
    if driver is None:
        unknown["driver"] = "no NVIDIA driver was found"
    if cuda is None:
        unknown["cuda_driver"] = "neither NVML nor nvidia-smi tells it"
    return gpus, driver, cuda


def _gpus_by_nvml() -> tuple[list[dict[str, Any]], str | None, str | None]:
    import pynvml

    pynvml.nvmlInit()
    try:
        version = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        gpus = [
            {
                "name": _text(pynvml.nvmlDeviceGetName(handle)),
                "uuid": _text(pynvml.nvmlDeviceGetUUID(handle)),
                "memory_bytes": int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                "compute_capability": ".".join(map(str, pynvml.nvmlDeviceGetCudaComputeCapability(handle))),
            }
            for handle in handles
        ]
        return gpus, _text(pynvml.nvmlSystemGetDriverVersion()), f"{version // 1000}.{version % 1000 // 10}"
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    # Older releases of pynvml answer with bytes.
    return value.decode() if isinstance(value, bytes) else str(value)


def _gpus_by_smi() -> tuple[list[dict[str, Any]], str | None, str | None]:
    text = _output("nvidia-smi", f"--query-gpu={','.join(_SMI_FIELDS)}", "--format=csv,noheader,nounits")
    rows = [[cell.strip() for cell in line.split(",")] for line in (text or "").splitlines() if line.count(",") == 4]
    gpus = [
        {"name": name, "uuid": uuid, "memory_bytes": int(memory) << 20, "compute_capability": capability}
        for name, uuid, memory, capability, _ in rows
        if memory.isdigit()
    ]
    found = re.search(r"CUDA Version:\s*([\d.]+)", _output("nvidia-smi") or "") if gpus else None
    return gpus, rows[0][4] if gpus else None, found.group(1) if found else None


def _driver_of_kernel() -> str | None:
    found = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", _read("/proc/driver/nvidia/version") or "")
    return found.group(1) if found else None


def _kernel_version() -> str | None:
    found = re.match(r"\d+(\.\d+)*", platform.release())
    return found.group() if found and platform.system() == "Linux" else None


def _architecture_level() -> str | None:
    """Return the microarchitecture level of an x86 processor (psABI): ``x86_64_v1`` to ``x86_64_v4``."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return platform.machine() or None
    flags = set(_cpuinfo().get("flags", "").split())
    levels = (
        {"sse4_2", "ssse3", "popcnt", "cx16"},
        {"avx2", "bmi1", "bmi2", "fma", "movbe", "f16c"},
        {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    )
    level = 1
    for needed in levels:
        if not needed <= flags:
            break
        level += 1
    return f"x86_64_v{level}"


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _output(*command: str) -> str | None:
    """Return what a program printed, or ``None`` if it is absent, failed or took longer than ten seconds."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
