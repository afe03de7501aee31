"""Copies between host and device: what they cost the device, the host, and whether anything hides them."""

from __future__ import annotations

import functools
import re
from typing import Final

import numpy as np

from tracelock.analysis.costs import Copying, TraceRow
from tracelock.analysis.intervals import EMPTY, Intervals, intersect, length, subtract, union
from tracelock.analysis.places import Places
from tracelock.analysis.stalls import asked_for
from tracelock.trace.columns import DeviceKind, Int64, Trace

_NAME: Final = re.compile(r"(HtoD|DtoH)(?: \((\w+) -> (\w+)\))?")
_MOSTLY = 0.5  # the host stays for more than this part of the copies: it waits for them


def copyings(places: Places, kernels: Intervals, busy: Intervals, steps: int) -> tuple[Copying, ...]:
    """Return the copies of the steps by direction and kind of host memory, the longest first.

    Parameters
    ----------
    kernels, busy
        When some kernel ran, and when the device worked at all.
    steps
        How many steps the means are over.
    """
    known, trace = places.known, places.known.trace
    device, (low, high) = trace.device, known.extent
    inside = (device.kind == DeviceKind.MEMCPY) & (device.start >= low) & (device.start < high)
    rows = np.flatnonzero(inside)
    launch = known.links.launch[rows]
    asked = (launch < 0) | asked_for(places, launch)
    groups: dict[tuple[str, str | None, bool], list[int]] = {}
    for row, on_purpose in zip(rows.tolist(), asked.tolist(), strict=True):
        if (kind := kind_of(trace.texts[device.name[row]])) is not None:
            groups.setdefault((*kind, on_purpose), []).append(row)
    times = (kernels, busy)
    found = [_copying(places, times, np.array(rows), kind, steps) for kind, rows in groups.items()]
    return tuple(sorted(found, key=lambda copying: -copying.device_us))


@functools.lru_cache(maxsize=1024)
def kind_of(name: str) -> tuple[str, str | None] | None:
    """Return direction and host memory of a copy's name, None for copies on or between devices."""
    match = _NAME.search(name)
    if match is None:
        return None
    memory = match[2] if match[1] == "HtoD" else match[3]
    return match[1], memory.lower() if memory and memory.lower() in ("pageable", "pinned") else None


def _copying(
    places: Places, times: tuple[Intervals, Intervals], rows: Int64, kind: tuple[str, str | None, bool], steps: int
) -> Copying:
    trace, device = places.known.trace, places.known.trace.device
    copied = union(device.start[rows], device.start[rows] + device.duration[rows])
    calls = _calls(places, rows)
    hosts = _host_time(trace, calls)
    worst = rows[np.argsort(-device.duration[rows], kind="stable")[:3]]
    return Copying(
        kind=kind[0],
        memory=kind[1],
        asked=kind[2],
        calls_per_step=len(rows) / steps,
        device_us=length(copied) / steps / 1000,
        exposed_us=length(subtract(copied, times[0])) / steps / 1000,
        host_us=length(hosts) / steps / 1000,
        waiting_us=length(intersect(hosts, times[1])) / steps / 1000,
        waits=bool(length(intersect(hosts, copied)) > _MOSTLY * length(copied)) if len(calls) else None,
        beside_kernels=not bool(np.isin(device.stream[rows], device.stream[device.kind == DeviceKind.KERNEL]).any()),
        rows=tuple(_row(places, int(row)) for row in worst),
    )


def _calls(places: Places, rows: Int64) -> Int64:
    """Return the host rows that stand for the copies: the outermost operators, or launch calls outside of any."""
    launches = places.known.links.launch[rows]
    launches = launches[launches >= 0]
    outer = places.outermost(launches)
    return np.unique(np.where(outer >= 0, outer, launches)).astype(np.int64)


def _host_time(trace: Trace, calls: Int64) -> Intervals:
    host = trace.host
    return union(host.start[calls], host.start[calls] + host.duration[calls]) if len(calls) else EMPTY


def _row(places: Places, row: int) -> TraceRow:
    known = places.known
    trace, device, launch = known.trace, known.trace.device, int(known.links.launch[row])
    return TraceRow(
        name=trace.texts[device.name[row]],
        start_us=(int(device.start[row]) - known.origin) / 1000,
        duration_us=int(device.duration[row]) / 1000,
        inside=None,
        code=places.user_frame(launch) if launch >= 0 else None,
    )
