"""One accelerator over a window of time: span, busy, idle, what it was busy with, how well it was filled.

Only kernels, copies and sets are work; synchronisation rows and device annotations never are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Intervals, Mask, clip, cover, join, length, subtract
from tracelock.analysis.links import is_busy
from tracelock.analysis.names import is_collective_kernel, matching
from tracelock.trace.columns import DeviceKind, DeviceRows, Int64, Trace


@dataclass(frozen=True)
class DeviceTime:
    """What the rows of one device cover, ns."""

    device: int
    compute: Intervals  # kernels but those of collectives
    communication: Intervals  # kernels of collectives
    memory: Intervals  # copies and sets
    kernels: Intervals
    busy: Intervals

    def within(self, low: int, high: int) -> DeviceTime:
        """Return the same of [low, high) alone."""
        parts = (self.compute, self.communication, self.memory, self.kernels, self.busy)
        return DeviceTime(self.device, *(clip(part, low, high) for part in parts))

    @property
    def span(self) -> tuple[int, int]:
        """Return first start and last end of the work, ns; (0, 0) without any."""
        return (int(self.busy.start[0]), int(self.busy.end[-1])) if len(self.busy) else (0, 0)

    @property
    def exposed_communication(self) -> Intervals:
        """Return when the device communicated and did not compute."""
        return subtract(self.communication, self.compute)


def device_times(trace: Trace) -> list[DeviceTime]:
    """Return what the rows of each device cover, by ordinal; a row that names no device is of device -1."""
    busy = is_busy(trace.device)
    communicates = matching(trace.texts, trace.device.name, is_collective_kernel)
    return [
        _device_time(trace.device, int(device), busy & (trace.device.device == device), communicates)
        for device in np.unique(trace.device.device[busy])
    ]


def _device_time(rows: DeviceRows, device: int, mine: Mask, communicates: Mask) -> DeviceTime:
    kernels = mine & (rows.kind == DeviceKind.KERNEL)
    compute = cover(rows.start, rows.duration, kernels & ~communicates)
    communication = cover(rows.start, rows.duration, kernels & communicates)
    memory = cover(rows.start, rows.duration, mine & ~kernels)
    every_kernel = join(compute, communication)
    return DeviceTime(device, compute, communication, memory, every_kernel, join(every_kernel, memory))


def utilization(time: DeviceTime, low: int, high: int) -> float | None:
    """Return how much of [low, high) some kernel ran, 0..1; None for an empty window."""
    return length(clip(time.kernels, low, high)) / (high - low) if high > low else None


def sm_efficiency(rows: DeviceRows, chosen: Mask, low: int, high: int) -> float | None:
    """Return how much of the multiprocessors were given a block over [low, high), 0..1.

    At each moment the blocks per multiprocessor of the kernels that run are added up, and count as 1 at most (the
    TensorBoard plugin's "Est. SM Efficiency"). None where no kernel tells its blocks, or the window is empty.
    """
    start, end, blocks = _clipped(rows, chosen & ~np.isnan(rows.blocks_per_sm), rows.blocks_per_sm, low, high)
    if not len(start) or high <= low:
        return None
    edges = np.concatenate((start, end))
    change = np.concatenate((blocks, -blocks))
    order = np.argsort(edges, kind="stable")
    held = np.cumsum(change[order])[:-1]
    filled = np.clip(held, 0, 1) @ np.diff(edges[order])
    return min(float(filled) / (high - low), 1.0)


def occupancy(rows: DeviceRows, chosen: Mask, low: int, high: int) -> float | None:
    """Return the mean estimated occupancy of the kernels in [low, high), weighted by their time there, percent."""
    start, end, percent = _clipped(rows, chosen & ~np.isnan(rows.occupancy), rows.occupancy, low, high)
    weight = end - start
    total = int(weight.sum())
    return float(percent @ weight) / total if total else None


def _clipped(
    rows: DeviceRows, chosen: Mask, values: npt.NDArray[np.float32], low: int, high: int
) -> tuple[Int64, Int64, npt.NDArray[np.float64]]:
    """Return start, end and value of the kernels of `chosen` as far as they lie in [low, high)."""
    chosen = chosen & (rows.kind == DeviceKind.KERNEL)
    start = np.clip(rows.start[chosen], low, high)
    end = np.clip(rows.start[chosen] + rows.duration[chosen], low, high)
    inside = end > start
    return start[inside], end[inside], values[chosen][inside].astype(np.float64)
