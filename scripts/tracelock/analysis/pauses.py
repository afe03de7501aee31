"""Stretches of a step in which nothing that is recorded works, and steps that take longer than the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracelock.analysis.costs import Excess, Pause, TraceRow
from tracelock.analysis.intervals import EMPTY, Intervals, gaps, join, lengths_within, union
from tracelock.analysis.marked import HostSteps
from tracelock.analysis.names import is_collective_call, is_loading, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.places import Places
from tracelock.analysis.steps import MARKED
from tracelock.trace.columns import HostKind, Int64

SHORTEST = 500_000  # ns: dispatching one operator from Python takes a hundredth of it
LONG_STEP = 1.25  # of the usual step
NAMED = 48  # gaps
USUAL = 25  # percentile: every second step may be a long one


def _is_work(name: str) -> bool:
    """Return whether a label stands for work that no operator shows: loading, collectives, gradients that are freed."""
    return is_loading(name) or is_collective_call(name) or name.startswith("Optimizer.")


def working(places: Places, busy: Intervals) -> Intervals:
    """Return when the device, an operator, a runtime call, a collective, the loader or the optimizer worked."""
    trace, host = places.known.trace, places.known.trace.host
    chosen = places.operators | of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER))
    chosen |= matching(trace.texts, host.name, _is_work)
    if not chosen.any():
        return busy
    return join(busy, union(host.start[chosen], host.start[chosen] + host.duration[chosen]))


def pauses(places: Places, steps: HostSteps, busy: Intervals) -> tuple[Pause, ...]:
    """Return the long gaps inside the steps, by the user's frame around them, the longest first.

    Only the `NAMED` longest are looked up in the stacks: what is short beside them is not worth a line.
    """
    if not len(steps):
        return ()
    gaps_found = _gaps(places, steps, busy)
    groups: dict[str | None, list[tuple[int, int, int]]] = {}
    for place, gap in enumerate(gaps_found):
        frame = _frame(places, *gap[1:]) if place < NAMED else None
        groups.setdefault(frame, []).append(gap)
    found = [_pause(code, each, len(steps), places.known.origin) for code, each in groups.items()]
    return tuple(sorted(found, key=lambda pause: -pause.host_us))


def _gaps(places: Places, steps: HostSteps, busy: Intervals) -> list[tuple[int, int, int]]:
    """Return (step, start, end) of the long gaps, the longest first; ns."""
    worked = working(places, busy)
    found = []
    for step in range(len(steps)):
        free = gaps(worked, int(steps.start[step]), int(steps.end[step]))
        long = free.end - free.start >= SHORTEST
        found += [(step, *gap) for gap in zip(free.start[long].tolist(), free.end[long].tolist(), strict=True)]
    return sorted(found, key=lambda gap: gap[1] - gap[2])


def _frame(places: Places, start: int, end: int) -> str | None:
    """Return the user's frame that holds most of a gap, which begins a little before the call and ends after it."""
    edge = (end - start) // 20
    return places.frame_around(places.known.windows.track, start + edge, end - edge)


def _pause(code: str | None, found: list[tuple[int, int, int]], steps: int, origin: int) -> Pause:
    worst = sorted(found, key=lambda gap: gap[1] - gap[2])[:3]
    return Pause(
        code=code,
        steps=len({step for step, _, _ in found}),
        host_us=sum(end - start for _, start, end in found) / steps / 1000,
        rows=tuple(
            TraceRow("(nothing recorded)", (start - origin) / 1000, (end - start) / 1000, None, code)
            for _, start, end in worst
        ),
    )


def excess(places: Places) -> Excess | None:
    """Return what steps beyond `LONG_STEP` usual ones take more than a usual one; None for fewer than three steps."""
    known = places.known
    trace, windows, origin = known.trace, known.windows, known.origin
    kept = np.flatnonzero(windows.complete)
    if len(kept) < 3 or windows.source != MARKED:
        return None
    duration = (windows.end - windows.start)[kept]
    long = duration > LONG_STEP * _usual(duration)
    loads = matching(trace.texts, trace.host.name, is_loading)
    start = trace.host.start[loads]
    loading = union(start, start + trace.host.duration[loads]) if len(start) else EMPTY
    waited = lengths_within(loading, windows.host_start[kept], windows.host_end[kept])
    rows = tuple(
        TraceRow(
            windows.names[step],
            (int(windows.start[step]) - origin) / 1000,
            int(windows.end[step] - windows.start[step]) / 1000,
        )
        for step in kept[long]
    )
    return Excess(int(long.sum()), _beyond(duration, long), _beyond(waited, long), _work(places, kept, long), rows[:3])


def _work(places: Places, kept: npt.NDArray[np.intp], long: npt.NDArray[np.bool_]) -> float | None:
    """Return the operators that begin in long steps, mean, in units of a usual step; None without operators."""
    begun, windows = places.known.trace.host.start[places.operators], places.known.windows
    low, high = windows.host_start[kept], windows.host_end[kept]
    counts = np.searchsorted(begun, high) - np.searchsorted(begun, low)
    usual = _usual(counts)
    return float(counts[long].mean()) / usual if usual and long.any() else None


def _beyond(values: Int64, long: npt.NDArray[np.bool_]) -> float:
    """Return what the long ones have more than a usual one; mean over all, µs."""
    return max(0.0, float((values[long] - _usual(values)).sum())) / len(values) / 1000


def _usual(values: Int64 | npt.NDArray[np.intp]) -> float:
    return float(np.percentile(values, USUAL))
