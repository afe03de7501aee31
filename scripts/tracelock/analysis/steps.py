"""The steps of a trace and their windows.

A step is a host row ``ProfilerStep#N``. Its window begins where the one before ended, or later where the row does, and
runs to the end of the row or of the device work launched inside it, whichever is later; this is how the
TensorBoard profiler plugin took them, so that its step times can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracelock.analysis.completeness import complete_steps
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import Links, is_busy
from tracelock.analysis.names import is_step, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.trace.columns import HostKind, Int32, Int64, Trace, TraceWarning

MARKED = "ProfilerStep"
WHOLE = "whole trace"


@dataclass(frozen=True)
class Windows:
    """The steps in order of time, shape (n,) each; ns."""

    names: tuple[str, ...]
    host_start: Int64  # of the row
    host_end: Int64
    start: Int64  # of the window
    end: Int64
    complete: Mask  # False where the recording may have ended inside the step
    source: str  # MARKED or WHOLE
    track: int = -1  # of the thread that marks the steps, or that runs most operators; -1 without host rows
    warnings: tuple[TraceWarning, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def extent(self) -> tuple[int, int] | None:
        """Return first start and last end of the complete windows, ns; None without any."""
        kept = np.flatnonzero(self.complete)
        return (int(self.start[kept[0]]), int(self.end[kept[-1]])) if len(kept) else None


def find_windows(trace: Trace, links: Links) -> Windows:
    """Return the windows of the steps of `trace`; where no step is marked, one window over all of it."""
    rows, warnings = _step_rows(trace)
    if not len(rows):
        return _whole(trace)
    host_start = trace.host.start[rows]
    host_end = host_start + trace.host.duration[rows]
    step = launching_step(trace, links, host_start, host_end)
    start, end = _windows(trace, step, host_start, host_end)
    names = tuple(trace.texts[name] for name in trace.host.name[rows])
    complete = complete_steps(trace, step, host_start, host_end)
    return Windows(names, host_start, host_end, start, end, complete, MARKED, int(trace.host.track[rows[0]]), warnings)


def _step_rows(trace: Trace) -> tuple[Int64, tuple[TraceWarning, ...]]:
    """Return the host rows that are steps, on the thread that has most of them, each once."""
    host = trace.host
    rows = np.flatnonzero(of_kinds(host, (HostKind.ANNOTATION, HostKind.OPERATOR)))
    rows = rows[matching(trace.texts, host.name[rows], is_step)]
    if not len(rows):
        return rows, ()
    kept = rows[host.track[rows] == np.bincount(host.track[rows]).argmax()]
    end = host.start[kept] + host.duration[kept]
    outer = np.concatenate(([True], end[1:] > np.maximum.accumulate(end)[:-1]))
    counts = (
        (
            "steps-on-several-threads",
            len(rows) - len(kept),
            "steps on other threads than the one with most were left out",
        ),
        ("steps-inside-steps", int((~outer).sum()), "steps that lie inside another (written twice) were left out"),
    )
    return kept[outer], tuple(TraceWarning(*each) for each in counts if each[1])


def launching_step(trace: Trace, links: Links, start: Int64, end: Int64) -> Int32:
    """Return for each device row the step [start, end] that its launch lies wholly in, -1 without; shape (n,)."""
    step = np.full(len(trace.device), -1, np.int32)
    rows = np.flatnonzero(is_busy(trace.device) & (links.launch >= 0))
    launch = links.launch[rows]
    begun = trace.host.start[launch]
    at = np.searchsorted(start, begun, side="right") - 1
    inside = (at >= 0) & (begun + trace.host.duration[launch] <= end[at])
    step[rows[inside]] = at[inside]
    return step


def _windows(trace: Trace, step: Int32, host_start: Int64, host_end: Int64) -> tuple[Int64, Int64]:
    device_end = host_end.copy()
    rows = np.flatnonzero(step >= 0)
    row_end = trace.device.start[rows] + trace.device.duration[rows]
    np.maximum.at(device_end, step[rows], row_end)
    start, end = host_start.copy(), device_end
    before = _end_of_earlier_work(trace, step, int(host_start[0]))
    for index in range(len(start)):
        start[index] = before = max(before, int(start[index]))
        end[index] = before = max(before, int(end[index]))
    return start, end


def _end_of_earlier_work(trace: Trace, step: Int32, earliest: int) -> int:
    """Return where the device ended what no step launched, before it began the first step's work; ns."""
    device = trace.device
    first = np.flatnonzero(step == 0)
    if not len(first):
        return earliest
    end = device.start + device.duration
    earlier = is_busy(device) & (step < 0) & (end < int(device.start[first[0]]))
    return max(earliest, int(end[earlier].max())) if earlier.any() else earliest


def _whole(trace: Trace) -> Windows:
    """Return one window: from the first operator to the last, or to the end of the device's work."""
    starts, ends = _extents(trace)
    if not starts:
        none = np.empty(0, np.int64)
        return Windows((), none, none, none, none, np.empty(0, np.bool_), WHOLE)
    start, end = np.array([min(starts)]), np.array([max(ends)])
    complete = np.array([trace.facts.quality != "partial"])
    return Windows((WHOLE,), start, end, start, end, complete, WHOLE, _busiest_track(trace))


def _busiest_track(trace: Trace) -> int:
    tracks = trace.host.track[of_kinds(trace.host, (HostKind.OPERATOR,))]
    tracks = tracks if len(tracks) else trace.host.track
    return int(np.bincount(tracks).argmax()) if len(tracks) else -1


def _extents(trace: Trace) -> tuple[list[int], list[int]]:
    host, device = trace.host, trace.device
    operators = of_kinds(host, (HostKind.OPERATOR,))
    chosen = operators if operators.any() else np.ones(len(host), np.bool_)
    parts = (
        (host.start[chosen], host.duration[chosen]),
        (device.start[is_busy(device)], device.duration[is_busy(device)]),
    )
    filled = [(start, duration) for start, duration in parts if len(start)]
    return [int(start[0]) for start, _ in filled], [int((start + duration).max()) for start, duration in filled]
