"""Communication: sizes, bandwidths, and how much of it computation hides.

A rank's kernel begins to run when the rank arrives and ends when all have: its time holds the waiting for the others,
and a bandwidth from one trace is a lower bound of what the network did. Several ranks together tell more (`ranks`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tracelock.analysis.collective_calls import HOST, Call
from tracelock.analysis.gpu import DeviceTime
from tracelock.analysis.intervals import Intervals, clip, intersect, length, union
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.sections import Collective, Collectives
from tracelock.trace.columns import HostKind, Trace


def collectives(
    trace: Trace, calls: Sequence[Call], times: Sequence[DeviceTime], low: int, high: int
) -> tuple[Collectives, ...]:
    """Return the communication of each device that communicates within [low, high), and of the host's threads.

    Parameters
    ----------
    calls
        The collectives of the trace.
    times
        What each device was busy with.
    low, high
        The window of all steps, ns.

    """
    found = []
    for time in times:
        within = time.within(low, high)
        if len(within.communication):
            mine = [call for call in calls if call.device == time.device]
            found.append(_describe(time.device, mine, within.communication, within.compute, (low, high)))
    hosted = [call for call in calls if call.device == HOST]
    covered = clip(_covered(hosted), low, high)
    if len(covered):
        found.append(_describe(HOST, hosted, covered, _operators_beside(trace, hosted), (low, high)))
    return tuple(found)


def _covered(calls: Sequence[Call]) -> Intervals:
    return union(np.array([call.start for call in calls], np.int64), np.array([call.end for call in calls], np.int64))


def _operators_beside(trace: Trace, calls: Sequence[Call]) -> Intervals:
    """Return when operators ran on threads that carry out no collective."""
    host = trace.host
    threads = sorted({call.track for call in calls})
    rows = of_kinds(host, (HostKind.OPERATOR,)) & ~np.isin(host.track, threads)
    return union(host.start[rows], host.start[rows] + host.duration[rows])


def _describe(
    device: int, calls: Sequence[Call], covered: Intervals, compute: Intervals, window: tuple[int, int]
) -> Collectives:
    total, hidden = length(covered), length(intersect(covered, compute))
    groups: dict[tuple[str, str | None, int | None], list[Call]] = defaultdict(list)
    for call in calls:
        if window[0] <= call.start < window[1]:
            groups[call.what.name, call.what.dtype, call.what.group_size].append(call)
    items = [_item(*key, members) for key, members in groups.items()]
    return Collectives(
        device=device,
        union_us=total / 1000,
        overlapped_us=hidden / 1000,
        overlap_share=hidden / total if total else None,
        items=tuple(sorted(items, key=lambda item: (-item.total_us, item.name, item.dtype or ""))),
    )


def _item(name: str, dtype: str | None, group_size: int | None, calls: Sequence[Call]) -> Collective:
    times = [call.end - call.start for call in calls]
    sizes = [call.what.bytes for call in calls]
    size = sum(each for each in sizes if each is not None) if None not in sizes else None
    algorithm = None if not size or not sum(times) else size / (sum(times) / 1e9)
    factor = bus_factor(name, group_size)
    return Collective(
        name=name,
        dtype=dtype,
        group_size=group_size,
        calls=len(calls),
        bytes=size,
        total_us=sum(times) / 1000,
        min_us=min(times) / 1000,
        max_us=max(times) / 1000,
        algorithm_bandwidth=algorithm,
        bus_bandwidth=None if algorithm is None or factor is None else algorithm * factor,
    )


def bus_factor(name: str, group_size: int | None) -> float | None:
    """Return bus bandwidth over algorithm bandwidth for a group of `group_size` ranks (nccl-tests, PERFORMANCE.md).

    None where the collective or its group is not known, or where it has one member: nothing crosses a bus.
    """
    if name in ("broadcast", "reduce", "send", "recv", "send_recv"):
        return 1.0
    if group_size is None or group_size < 2:
        return None
    if name == "all_reduce":
        return 2 * (group_size - 1) / group_size
    if name in ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"):
        return (group_size - 1) / group_size
    return None
