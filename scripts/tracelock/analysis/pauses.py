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
from tracelock.analysis.recurrence import Gap, returning
from tracelock.analysis.steps import MARKED
from tracelock.trace.columns import HostKind, Int64

SHORTEST = 500_000  # ns: dispatching one operator from Python takes a hundredth of it
LONG_STEP = 1.25  # of the usual step
NAMED = 48  # gaps
LOOKED_FOR = 2000  # gaps: the longest; more of them in a trace are no rare event
NEXT = 100_000  # ns: from the end of a gap to the loader's row that it led to
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
    loads = _loading_starts(places)
    back = returning(places, steps, gaps_found[:LOOKED_FOR])
    groups: dict[tuple[str | None, bool], list[tuple[Gap, bool]]] = {}
    for place, gap in enumerate(gaps_found):
        frame = _frame(places, *gap[1:]) if place < NAMED else None
        found_again = place < LOOKED_FOR and back[place]
        groups.setdefault((frame, _ends_at(loads, gap[2])), []).append((gap, found_again))
    found = [_pause(key, each, len(steps), places.known.origin) for key, each in groups.items()]
    return tuple(sorted(found, key=lambda pause: -pause.host_us))


def _loading_starts(places: Places) -> Int64:
    host = places.known.trace.host
    return host.start[matching(places.known.trace.texts, host.name, is_loading)]


def _ends_at(starts: Int64, end: int) -> bool:
    """Return whether a gap that ends at `end` ends with one of `starts`."""
    after = int(np.searchsorted(starts, end - NEXT))
    return after < len(starts) and int(starts[after]) <= end + NEXT


def _gaps(places: Places, steps: HostSteps, busy: Intervals) -> list[Gap]:
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


def _pause(key: tuple[str | None, bool], placed: list[tuple[Gap, bool]], steps: int, origin: int) -> Pause:
    code, before_loading = key
    found = [gap for gap, _ in placed]
    worst = sorted(found, key=lambda gap: gap[1] - gap[2])[:3]
    by_step: dict[int, int] = {}
    for step, start, end in found:
        by_step[step] = by_step.get(step, 0) + end - start
    return Pause(
        code=code,
        steps=len(by_step),
        host_us=sum(by_step.values()) / steps / 1000,
        rows=tuple(
            TraceRow("(nothing recorded)", (start - origin) / 1000, (end - start) / 1000, None, code)
            for _, start, end in worst
        ),
        before_loading=before_loading,
        without_worst_us=(sum(by_step.values()) - max(by_step.values())) / (steps - 1) / 1000 if steps > 1 else None,
        returning_us=sum(gap[2] - gap[1] for gap, again in placed if again) / steps / 1000,
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
    return Excess(
        steps=int(long.sum()),
        excess_us=_beyond(duration, long),
        loading_us=_beyond(waited, long),
        work=_work(places, kept, long),
        rows=rows[:3],
        without_worst_us=_without_worst(duration, waited, long),
    )


def _without_worst(duration: Int64, waited: Int64, long: npt.NDArray[np.bool_]) -> float:
    """Return what the long steps but the worst have more than a usual one, waiting for data left out; mean, µs."""
    more = (duration - _usual(duration)) - (waited - _usual(waited))
    more = np.sort(more[long])[:-1]
    return max(0.0, float(more.sum())) / (len(duration) - 1) / 1000


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
