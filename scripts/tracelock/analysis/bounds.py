"""The costs of a step, assembled: which chain decides its length, and what waits, copies and pauses add to it."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.copying import copyings
from tracelock.analysis.costs import Bounds, Costs
from tracelock.analysis.hitches import hitches, idle_gaps
from tracelock.analysis.intervals import EMPTY, Intervals, clip, intersect, length, subtract, union
from tracelock.analysis.marked import host_steps
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.pauses import excess, pauses
from tracelock.analysis.places import Places
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.repeats import repetitions
from tracelock.analysis.stalls import Calls, waiting_calls, waits
from tracelock.analysis.updating import updating
from tracelock.trace.columns import HostKind, Trace

# ns: kernels that wait in one stream follow each other within 1-2 µs, and a launch takes 5.
BETWEEN_ROWS = 3_000


def costs(known: Prepared) -> Costs | None:
    """Return what holds the complete steps of a trace up; None where there is no window.

    Where several devices worked, the busiest one is the chain that counts.
    """
    trace, windows, times = known.trace, known.windows, known.times
    extent = windows.extent()
    if extent is None or extent[1] <= extent[0]:
        return None
    kept = np.flatnonzero(windows.complete)
    low, high = int(windows.host_start[kept[0]]), int(windows.host_end[kept[-1]])
    chain = max(times, key=lambda time: length(clip(time.busy, *extent)), default=None)
    busy, kernels = (chain.busy, chain.kernels) if chain else (EMPTY, EMPTY)
    places = Places(known)
    calls = waiting_calls(places, busy, low, high)
    waited = _waited(trace, calls, busy, low, high)
    loaded = _covered(places, low, high, loader=True)
    worked = subtract(subtract(_covered(places, low, high, loader=False), loaded), waited)
    steps, count = host_steps(windows), len(kept)
    return Costs(
        bounds=_bounds(extent, (low, high), busy if chain else None, waited, count),
        loading_us=length(loaded) / count / 1000,
        operators_us=length(worked) / count / 1000,
        waits=waits(places, calls, count),
        copies=copyings(places, kernels, busy, count),
        repetitions=repetitions(places, steps),
        pauses=pauses(places, steps, busy),
        excess=excess(places),
        optimizer=updating(places, steps),
        gaps=idle_gaps(places, closed(busy), extent, count) if chain else None,
        hitches=hitches(places, calls.rows, low, high, count),
    )


def _bounds(
    extent: tuple[int, int], host: tuple[int, int], busy: Intervals | None, waited: Intervals, steps: int
) -> Bounds:
    waiting = length(waited)
    return Bounds(
        step_us=(extent[1] - extent[0]) / steps / 1000,
        device_us=None if busy is None else length(clip(closed(busy), *extent)) / steps / 1000,
        host_us=max(0, host[1] - host[0] - waiting) / steps / 1000,
        waiting_us=waiting / steps / 1000,
    )


def closed(busy: Intervals) -> Intervals:
    """Return `busy` with the gaps closed that no host can avoid: a stream needs a moment between two rows."""
    if not len(busy):
        return busy
    wider = union(busy.start, busy.end + BETWEEN_ROWS)
    return Intervals(wider.start, wider.end - BETWEEN_ROWS)


def _waited(trace: Trace, calls: Calls, busy: Intervals, low: int, high: int) -> Intervals:
    """Return when some call waited while the device worked."""
    if not len(calls.rows):
        return EMPTY
    start = trace.host.start[calls.rows]
    return clip(intersect(union(start, start + trace.host.duration[calls.rows]), busy), low, high)


def _covered(places: Places, low: int, high: int, *, loader: bool) -> Intervals:
    """Return when the loader, or else operators and runtime calls, worked on the host in [low, high)."""
    trace, host = places.known.trace, places.known.trace.host
    if loader:
        chosen = matching(trace.texts, host.name, is_loading)
    else:
        chosen = places.operators | of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER))
    if not chosen.any():
        return EMPTY
    return clip(union(host.start[chosen], host.start[chosen] + host.duration[chosen]), low, high)
