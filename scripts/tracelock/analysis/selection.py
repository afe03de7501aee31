"""A part of a trace that is a trace itself: one step alone."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.analysis.prepared import Prepared, prepare
from tracelock.analysis.steps import MARKED, Windows, launching_step
from tracelock.errors import Problem, TracelockError
from tracelock.trace.columns import DeviceRows, FlowRows, HostRows, Int64, MemoryRows, Trace

Rows = TypeVar("Rows", HostRows, DeviceRows, MemoryRows, FlowRows)


def take(rows: Rows, kept: Mask) -> Rows:
    """Return the rows that are `kept`, shape (n,), in their order."""
    columns: dict[str, Any] = {column.name: getattr(rows, column.name)[kept] for column in fields(rows)}
    return replace(rows, **columns)


def only_step(known: Prepared, number: int) -> Prepared:
    """Return ``ProfilerStep#number`` alone, in the window that it has among the others.

    Kept is what touches the window; tables sum over what begins in the step on the host, the device rows that it
    launched, and rows without a known launch that begin in its window.

    Raises
    ------
    TracelockError
        If the trace has no such step, or not to its end; the line names those that it has.
    """
    index = _find(known, number)
    one = slice(index, index + 1)
    windows = Windows(
        names=known.windows.names[one],
        host_start=known.windows.host_start[one],
        host_end=known.windows.host_end[one],
        start=known.windows.start[one],
        end=known.windows.end[one],
        complete=known.windows.complete[one],
        source=known.windows.source,
        warnings=known.windows.warnings,
    )
    alone = _cut(known.trace, windows)
    found = prepare(alone)
    begun = _begins(alone.host, windows.host_start, windows.host_end)
    launched = launching_step(alone, found.links, windows.host_start, windows.host_end) == 0
    unlinked = (found.links.launch < 0) & _begins(alone.device, windows.start, windows.end)
    return replace(
        found,
        windows=windows,
        origin=known.origin,
        host=begun & known.host[_touches(known.trace.host, windows)],
        device=launched | unlinked,
        restricted=True,
    )


def _cut(trace: Trace, windows: Windows) -> Trace:
    """Return what touches the one window of `windows`; memory records belong to the host's step."""
    memory = trace.memory
    return replace(
        trace,
        host=take(trace.host, _touches(trace.host, windows)),
        device=take(trace.device, _touches(trace.device, windows)),
        memory=take(memory, (memory.time >= windows.host_start) & (memory.time < windows.host_end)),
        flows=take(trace.flows, np.zeros(len(trace.flows), np.bool_)),
    )


def _touches(rows: HostRows | DeviceRows, windows: Windows) -> Mask:
    low, high = np.minimum(windows.start, windows.host_start), windows.end
    return (rows.start < high) & (rows.start + rows.duration > low)


def _begins(rows: HostRows | DeviceRows, low: Int64, high: Int64) -> Mask:
    return (rows.start >= low) & (rows.start < high)


def _find(known: Prepared, number: int) -> int:
    windows, file = known.windows, known.trace.facts.file
    if windows.source != MARKED:
        raise TracelockError(Problem(file, "marks no steps", "prof.step() in the training loop marks them"))
    there = dict(zip(windows.names, windows.complete.tolist(), strict=True))
    wanted = f"ProfilerStep#{number}"
    if not there.get(wanted, False):
        whole = [name.removeprefix("ProfilerStep#") for name, complete in there.items() if complete]
        hint = f"whole steps are {', '.join(whole[:20])}{f' and {len(whole) - 20} more' if len(whole) > 20 else ''}"
        what = "was recorded in part only" if wanted in there else "is not in the trace"
        raise TracelockError(Problem(file, f"step {number} {what}", hint))
    return windows.names.index(wanted)
