"""What is sampled of a GPU beside the timed steps: by NVML, or by one nvidia-smi that keeps running."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from typing import Any

from tracelock.runner.gpus import Gpu
from tracelock.runner.probes import Probe, Value

GPU_COLUMNS = (
    "gpu_utilization_percent",
    "gpu_memory_used_bytes",
    "gpu_power_w",
    "gpu_sm_clock_mhz",
    "gpu_memory_clock_mhz",
    "gpu_temperature_c",
    "gpu_throttle",  # reasons, separated by |
)
_SMI_FIELDS = (
    "utilization.gpu,memory.used,power.draw,clocks.sm,clocks.mem,temperature.gpu,clocks_throttle_reasons.active"
)
# Bits of nvmlClocksThrottleReasons (nvml.h).
_THROTTLE = {
    0x1: "idle",
    0x2: "application_clocks",
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
    0x100: "display_clocks",
}


def gpu_probe(gpu: Gpu) -> Probe | None:
    """Return a probe of `gpu`: NVML where it is installed, else nvidia-smi, else None."""
    kinds: tuple[Callable[[Gpu], Probe], ...] = (NvmlProbe, NvidiaSmiProbe)
    for kind in kinds:
        try:
            return kind(gpu)
        except (ImportError, OSError):
            continue
    return None


def throttle_words(bits: int) -> str:
    """Return the reasons in a mask of throttling reasons, such as ``power_cap|software_thermal``."""
    return "|".join(word for bit, word in _THROTTLE.items() if bits & bit)


class NvmlProbe:
    """A GPU by NVML."""

    columns: tuple[str, ...] = GPU_COLUMNS

    def __init__(self, gpu: Gpu) -> None:
        import pynvml

        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        except pynvml.NVMLError as error:
            raise OSError(str(error)) from None

    def read(self) -> list[Value]:
        """Return one sample."""
        nvml, handle = self._nvml, self._handle
        bits = self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        power = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
        return [
            getattr(self._ask(nvml.nvmlDeviceGetUtilizationRates, handle), "gpu", None),
            getattr(self._ask(nvml.nvmlDeviceGetMemoryInfo, handle), "used", None),
            None if power is None else power / 1000,
            self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            None if bits is None else throttle_words(bits),
        ]

    def close(self) -> None:
        """NVML is left as it is; torch may use it."""

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return NVML's answer, or None where this GPU has none."""
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
            return None


class NvidiaSmiProbe:
    """A GPU by one nvidia-smi that prints a line four times a second; a sample is its newest line."""

    columns: tuple[str, ...] = GPU_COLUMNS

    def __init__(self, gpu: Gpu) -> None:
        command = ["nvidia-smi", f"--id={gpu.uuid}", f"--query-gpu={_SMI_FIELDS}", "--format=csv,noheader,nounits"]
        self._process = subprocess.Popen([*command, "-lms", "250"], stdout=subprocess.PIPE, text=True)
        self._newest = ""
        self._reader = threading.Thread(target=self._follow, name="nvidia-smi", daemon=True)
        self._reader.start()

    def read(self) -> list[Value]:
        """Return one sample, None for each value that the GPU does not report."""
        return smi_values(self._newest)

    def close(self) -> None:
        """End nvidia-smi."""
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def _follow(self) -> None:
        if self._process.stdout is not None:
            with self._process.stdout as lines:
                for line in lines:
                    self._newest = line


def smi_values(line: str) -> list[Value]:
    """Return the values of one line of nvidia-smi in the order of GPU_COLUMNS, None for ``[N/A]`` and the like."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(GPU_COLUMNS):
        return [None] * len(GPU_COLUMNS)
    numbers: list[Value] = [_number(cell) for cell in cells[:-1]]
    if isinstance(numbers[1], float):
        numbers[1] = int(numbers[1] * 2**20)  # nvidia-smi's unit is MiB
    bits = cells[-1]
    return [*numbers, throttle_words(int(bits, 16)) if bits.startswith("0x") else None]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
