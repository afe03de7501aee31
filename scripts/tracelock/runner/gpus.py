"""Which GPUs this process may use, found without starting CUDA."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_QUERY = ("nvidia-smi", "--query-gpu=index,uuid,name", "--format=csv,noheader")
_USERS = ("nvidia-smi", "--query-compute-apps=gpu_uuid", "--format=csv,noheader")


@dataclass(frozen=True)
class Gpu:
    """One GPU, or one slice of one.

    Parameters
    ----------
    index
        Its number by PCI bus, as nvidia-smi counts; None for a slice.
    uuid
        Its name for CUDA_VISIBLE_DEVICES, the same in every process.
    name
        Its product name, or an empty string.
    busy
        Processes that compute on it now.
    vendor
        ``nvidia`` or ``amd``.
    selector
        What ROCR_VISIBLE_DEVICES takes for a GPU of AMD: its UUID, or its number where it has none.
    """

    index: int | None
    uuid: str
    name: str = ""
    busy: int = 0
    vendor: str = "nvidia"
    selector: str = ""


def visible_gpus(environment: Mapping[str, str] | None = None) -> list[Gpu]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES (or ROCm's variables) leave to this process, idle ones first."""
    environment = os.environ if environment is None else environment
    chosen = preset(list_gpus(), environment.get("CUDA_VISIBLE_DEVICES"))
    if not chosen:
        chosen = amd_preset(list_amd_gpus(), environment)
    return sorted(chosen, key=lambda gpu: gpu.busy)


def preset(gpus: Sequence[Gpu], visible: str | None) -> list[Gpu]:
    """Return those of `gpus` that a value of CUDA_VISIBLE_DEVICES names, by CUDA's own rules.

    Numbers, beginnings of UUIDs and slices (``MIG-…``) are known; the first entry that names nothing ends the list.
    """
    if visible is None:
        return list(gpus)
    chosen = []
    for word in (part.strip() for part in visible.split(",")):
        gpu = _named(gpus, word)
        if gpu is None:
            break
        chosen.append(gpu)
    return chosen


def _named(gpus: Sequence[Gpu], word: str) -> Gpu | None:
    """Return the GPU that one entry of CUDA_VISIBLE_DEVICES names, or None."""
    if word.startswith("MIG-"):
        known = next((gpu for gpu in gpus if gpu.uuid.startswith(word)), None)
        return known or (Gpu(None, word) if gpus else None)
    if word.startswith("GPU-"):
        return next((gpu for gpu in gpus if gpu.uuid.startswith(word)), None)
    return next((gpu for gpu in gpus if str(gpu.index) == word), None)


def list_gpus() -> list[Gpu]:
    """Return all NVIDIA GPUs of this machine, from NVML or else from nvidia-smi; none where neither is at hand."""
    found = _from_nvml()
    return _from_nvidia_smi() if found is None else found


def _from_nvml() -> list[Gpu] | None:
    """Return the GPUs that NVML knows, or None where it cannot be asked."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        found = [_of_handle(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [each for gpu in found for each in _slices(pynvml, gpu) or [gpu]]
    except pynvml.NVMLError:
        return None


def _of_handle(nvml: object, index: int) -> Gpu:
    """Return the GPU with NVML's number `index`."""
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    try:
        busy = len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except pynvml.NVMLError:
        busy = 0
    return Gpu(index, text(pynvml.nvmlDeviceGetUUID(handle)), text(pynvml.nvmlDeviceGetName(handle)), busy)


def _slices(nvml: Any, gpu: Gpu) -> list[Gpu]:
    """Return the slices of a GPU in MIG mode: CUDA then sees them in its place. None of one in any other mode."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        if nvml.nvmlDeviceGetMigMode(handle)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return []
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except (nvml.NVMLError, AttributeError):
        return []
    found = []
    for number in range(count):
        try:
            slice_handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            uuid, name = text(nvml.nvmlDeviceGetUUID(slice_handle)), text(nvml.nvmlDeviceGetName(slice_handle))
        except nvml.NVMLError:  # there are fewer slices than places for them
            continue
        found.append(Gpu(None, uuid, name, gpu.busy))
    return found


def text(value: str | bytes) -> str:
    """Return what NVML gives as bytes or as a string, depending on its version."""
    return value.decode() if isinstance(value, bytes) else value


def _from_nvidia_smi() -> list[Gpu]:
    """Return the GPUs that nvidia-smi lists; none where the program is absent or fails."""
    users = [line.strip() for line in _lines(_USERS)]
    rows = [[cell.strip() for cell in line.split(",", 2)] for line in _lines(_QUERY)]
    return [Gpu(int(row[0]), row[1], row[2], users.count(row[1])) for row in rows if len(row) == 3 and row[0].isdigit()]


def _lines(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def amd_preset(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """Return those of AMD's GPUs that ROCR_VISIBLE_DEVICES leaves, and of these those that HIP's variable leaves.

    ROCR takes numbers and UUIDs (``GPU-`` and 16 hexadecimal digits); HIP, and CUDA's variable in its place, numbers
    within what ROCR shows.
    """
    shown = _listed(gpus, environment.get("ROCR_VISIBLE_DEVICES"))
    return _listed(shown, environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES")))


def _listed(gpus: Sequence[Gpu], words: str | None) -> list[Gpu]:
    if words is None:
        return list(gpus)
    chosen: list[Gpu] = []
    for word in (part.strip() for part in words.split(",")):
        named = [gpu for place, gpu in enumerate(gpus) if word in (str(place), gpu.uuid)]
        if not named:
            break
        chosen += named
    return chosen


def list_amd_gpus(topology: Path = Path("/sys/class/kfd/kfd/topology/nodes")) -> list[Gpu]:
    """Return AMD's GPUs by the kernel's topology of compute nodes, in ROCm's order; no program is needed for it."""
    found: list[Gpu] = []
    for node in sorted(topology.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            rows = [line.split() for line in (node / "properties").read_text().splitlines()]
            name = (node / "name").read_text().strip()
        except OSError:
            continue
        facts = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
        if not facts.get("simd_count"):  # a CPU
            continue
        index, unique = len(found), facts.get("unique_id", 0)
        place = f"{facts.get('domain', 0):04x}-{facts.get('location_id', 0):04x}"
        uuid = f"GPU-{unique:016x}" if unique else f"AMD-{place}"
        found.append(Gpu(index, uuid, name, vendor="amd", selector=uuid if unique else str(index)))
    return found
