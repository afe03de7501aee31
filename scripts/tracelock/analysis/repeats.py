"""Operators that a loop calls many times in a row, where one call could do: ``stack`` for each piece of a batch.

Repetition is told from a network's own pattern by looking at outermost operators of one thread in order: a loop
calls the same operator, or the same few of them, again and again with nothing else between; layers alternate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracelock.analysis.costs import Repetition
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import Links, is_busy
from tracelock.analysis.marked import HostSteps
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import Tree, by_thread
from tracelock.analysis.places import host_rows, longest, operators, outermost_operator
from tracelock.analysis.prepared import Prepared
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

PERIODS = (1, 2, 3)  # operators of one turn of a loop
SHORTEST_RUN = 16  # turns in a row that make a loop: fewer layers in a row are a small network's own


def repetitions(known: Prepared, steps: HostSteps) -> tuple[Repetition, ...]:
    """Return what loops repeat within the steps, by name and whether in the loader, the longest on the host first."""
    if not len(steps):
        return ()
    trace = known.trace
    rows, looped, loading = _outermost(trace, known.tree, steps)
    groups: dict[tuple[str, bool], list[int]] = {}
    for row, in_loader in zip(rows[looped].tolist(), loading[looped].tolist(), strict=True):
        groups.setdefault((trace.texts[trace.host.name[row]], in_loader), []).append(row)
    device_ns = device_time(trace, known.tree, known.links)
    found = [_repetition(known, np.array(each), key, device_ns, len(steps)) for key, each in groups.items()]
    return tuple(sorted(found, key=lambda repetition: -repetition.host_us))


def _outermost(trace: Trace, tree: Tree, steps: HostSteps) -> tuple[Int64, Mask, Mask]:
    """Return the outermost operators of the steps, which of them a loop repeats, and which lie in the loader."""
    is_operator = operators(trace)
    all_rows: list[Int64] = []
    all_looped: list[Mask] = []
    for thread in by_thread(trace.host, (HostKind.OPERATOR,)):
        parent = tree.parent[thread]
        outer = thread[is_operator[thread] & ((parent < 0) | ~is_operator[parent])]
        outer = outer[steps.of(trace.host.start[outer]) >= 0]
        all_rows.append(outer.astype(np.int64))
        all_looped.append(in_loop(trace.host.name[outer]))
    if not all_rows:
        return np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.bool_)
    rows: Int64 = np.concatenate(all_rows).astype(np.int64)
    return rows, np.concatenate(all_looped), _in_loader(trace, tree, rows)


def in_loop(names: Int32) -> Mask:
    """Return which of a thread's operators, in order, belong to a run of one pattern of at most three operators.

    Parameters
    ----------
    names
        The names' ids in order of time, shape (n,).
    """
    looped = np.zeros(len(names), np.bool_)
    for period in PERIODS:
        same = names[period:] == names[:-period]
        for first, last in _runs(same):
            if last - first + period >= SHORTEST_RUN * period:
                looped[first : last + period] = True
    return looped


def _runs(values: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return [first, last) of each run of True."""
    edges = np.diff(np.concatenate(([0], values.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def _in_loader(trace: Trace, tree: Tree, rows: Int64) -> Mask:
    """Return which rows lie in a call of the loader, at any depth."""
    loads = matching(trace.texts, trace.host.name, is_loading)
    inside = np.zeros(len(rows), np.bool_)
    at = tree.parent[rows].copy()
    climbing = np.flatnonzero(at >= 0)
    while len(climbing):
        inside[climbing] |= loads[at[climbing]]
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[at[climbing] >= 0]
    return inside


def device_time(trace: Trace, tree: Tree, links: Links) -> Int64:
    """Return for each host row how long the device rows took whose outermost operator it is (their sum), ns."""
    total = np.zeros(len(trace.host), np.int64)
    known = np.flatnonzero(is_busy(trace.device) & (links.operator >= 0))
    outer = outermost_operator(trace, tree, links.operator[known])
    np.add.at(total, outer, trace.device.duration[known])
    return total


def _repetition(known: Prepared, rows: Int64, key: tuple[str, bool], device_ns: Int64, steps: int) -> Repetition:
    duration = known.trace.host.duration
    host_ns = int(duration[rows].sum())
    return Repetition(
        name=key[0],
        calls_per_step=len(rows) / steps,
        mean_us=host_ns / len(rows) / 1000,
        host_us=host_ns / steps / 1000,
        device_us=int(device_ns[rows].sum()) / steps / 1000,
        in_loader=key[1],
        rows=host_rows(known, longest(duration, rows)),
    )
