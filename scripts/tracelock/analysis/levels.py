"""The allocated level of each device after each of its records.

`Total Allocated` and `Total Reserved` are the allocator's own counters, written with each allocation and free by
torch 1.10 and later. Before that only the sizes were written: their running sum gives the growth, no level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracelock.trace.columns import Int64, Trace

# c10::DeviceType, as "Device Type" of a record has it
DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuse1"}

DEVICES = 1 << 16  # more than an int16 counts


@dataclass(frozen=True)
class Levels:
    """The allocated level of one device after each of its records, shape (n,) each, n >= 1."""

    device: str
    ordinal: int
    rows: Int64  # positions in Trace.memory
    time: Int64  # ns
    change: Int64  # bytes
    allocated: Int64  # bytes; relative to the first record where `totals` is False
    reserved: Int64 | None
    totals: bool

    @property
    def before(self) -> int:
        """Return the level before the first record, bytes."""
        return int(self.allocated[0] - self.change[0])

    def at(self, times: Int64) -> Int64:
        """Return the level at `times` (records of the same nanosecond included)."""
        position = np.searchsorted(self.time, times, side="right")
        return np.concatenate(([self.before], self.allocated))[position]


def device_levels(trace: Trace) -> list[Levels]:
    """Return the levels of each device that has records: the host first, then by type and ordinal."""
    memory = trace.memory
    places = memory.device_type.astype(np.int64) * DEVICES + memory.device + 1  # one number a device; -1 becomes 0
    return [_levels(trace, np.flatnonzero(places == place), place) for place in np.unique(places).tolist()]


def _levels(trace: Trace, rows: Int64, place: int) -> Levels:
    kind, ordinal = place // DEVICES, place % DEVICES - 1
    memory = trace.memory
    counted = rows[memory.allocated[rows] >= 0]
    totals = len(counted) > 0
    kept = counted if totals else rows
    change = memory.bytes[kept]
    reserved = memory.reserved[kept]
    name = DEVICE_TYPES.get(kind, f"device type {kind}" if kind >= 0 else "unknown device")
    return Levels(
        device=name if ordinal < 0 else f"{name}:{ordinal}",
        ordinal=ordinal,
        rows=kept,
        time=memory.time[kept],
        change=change,
        allocated=memory.allocated[kept] if totals else np.cumsum(change),
        reserved=reserved if totals and kind != 0 and (reserved >= 0).all() else None,
        totals=totals,
    )
