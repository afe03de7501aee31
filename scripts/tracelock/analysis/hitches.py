"""Idle gaps by their length, and calls of the host that once in a while take far longer than they do as a rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracelock.analysis.costs import Gaps, Hitch
from tracelock.analysis.intervals import Intervals, gaps
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.places import Places, longest
from tracelock.trace.columns import HostKind, Int64
from tracelock.trace.order import median

LONG = 1_000_000  # ns: two hundred launches
TIMES = 20  # usual durations of a call of that name: what a launch takes varies by two or three
FEWEST = 3  # calls of a name, of which the lower quartile is the usual one
USUAL = 25  # percentile


def idle_gaps(places: Places, busy: Intervals, extent: tuple[int, int], steps: int) -> Gaps | None:
    """Return how the device's idle time is divided by the length of its gaps; None without launches.

    A gap belongs to launching when it is no longer than `TIMES` usual times from one launch to the next, and may last
    half of `LONG` anyway: a host that is merely slow makes many gaps, each about as long as it takes to launch.
    """
    known = places.known
    launches = np.unique(known.links.launch[known.links.launch >= 0])
    begun = known.trace.host.start[launches]
    begun = np.sort(begun[(begun >= extent[0]) & (begun < extent[1])])
    if len(begun) < FEWEST:
        return None
    usual = median(np.diff(begun))
    free = gaps(busy, *extent)
    length = free.end - free.start
    launching = length <= max(LONG / 2, TIMES * usual)
    return Gaps(
        per_step=len(length) / steps,
        idle_us=int(length.sum()) / steps / 1000,
        launching_us=int(length[launching].sum()) / steps / 1000,
        usual_launch_us=usual / 1000,
    )


def hitches(places: Places, waiting: Int64, low: int, high: int, count: int) -> tuple[Hitch, ...]:
    """Return calls whose own time is `LONG` and `TIMES` the usual one of their name, by name, the longest first.

    Parameters
    ----------
    waiting
        Host rows of calls that wait for the device: those have reasons of their own.
    low, high
        The host's time from the first step to the end of the last, ns.
    count
        Complete steps.
    """
    known, host = places.known, places.known.trace.host
    main = host.track == known.windows.track
    chosen = (places.operators | of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER))) & main
    chosen &= (host.start >= low) & (host.start < high)
    chosen[waiting] = False
    own = known.tree.self_time
    found = []
    for name in np.unique(host.name[np.flatnonzero(chosen & (own >= LONG))]).tolist():
        mine = np.flatnonzero(chosen & (host.name == name))
        if len(mine) >= FEWEST:
            found += _hitch(places, mine, own, count)
    return tuple(sorted(found, key=lambda each: -each.host_us))


def _hitch(places: Places, mine: npt.NDArray[np.intp], own: Int64, count: int) -> list[Hitch]:
    """Return what the long ones of the calls `mine` of one name take beyond a usual one."""
    usual = float(np.percentile(own[mine], USUAL))
    long = mine[own[mine] >= max(LONG, TIMES * usual)]
    if not len(long):
        return []
    host, windows = places.known.trace.host, places.known.windows
    step = np.searchsorted(windows.host_start, host.start[long], side="right")
    beyond = own[long] - usual
    whole = float(beyond.sum())
    worst = max(float(beyond[step == each].sum()) for each in np.unique(step))
    return [
        Hitch(
            name=places.known.trace.texts[host.name[long[0]]],
            steps=len(np.unique(step)),
            calls_per_step=len(long) / count,
            usual_us=usual / 1000,
            host_us=whole / count / 1000,
            without_worst_us=(whole - worst) / max(1, count - 1) / 1000,
            rows=places.host_rows(longest(host.duration, long)),
        )
    ]
