"""Operators that a loop calls many times in a row, where one call could do: ``stack`` for each piece of a batch.

Repetition is told from a network's own pattern by looking at outermost operators of one thread in order: a loop
calls the same operator, or the same few of them, again and again with nothing else between; layers alternate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tracelock.analysis.costs import Repetition
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import is_busy
from tracelock.analysis.marked import HostSteps
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import Tree, by_thread
from tracelock.analysis.places import Places, longest
from tracelock.analysis.tensor_cores import is_eligible
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

PERIODS = (1, 2, 3)  # operators of one turn of a loop
LONGEST_GAP = 200_000  # ns: what a turn of a loop has around its operators
SHORTEST_RUN = 16  # turns in a row that make a loop: fewer layers in a row are a small network's own


def repetitions(places: Places, steps: HostSteps) -> tuple[Repetition, ...]:
    """Return what loops repeat within the steps, by name and place (loader, optimizer), the longest first."""
    if not len(steps):
        return ()
    known, trace = places.known, places.known.trace
    rows = _looped(places, steps)
    loading = inside(trace, known.tree, rows, is_loading)
    updating = inside(trace, known.tree, rows, _is_optimizer)
    code = (trace.host.name[rows].astype(np.int64) * 2 + loading) * 2 + updating
    _, first, member = np.unique(code, return_index=True, return_inverse=True)
    times = (device_time(places), _between(trace, rows))
    found = []
    for each in np.argsort(first).tolist():  # in the order in which they come
        row = int(first[each])
        key = (trace.texts[trace.host.name[rows[row]]], bool(loading[row]), bool(updating[row]))
        found.append(_repetition(places, rows[member == each], key, times, len(steps)))
    return tuple(sorted(found, key=lambda repetition: -repetition.host_us))


def _is_optimizer(name: str) -> bool:
    return name.startswith("Optimizer.")


def _looped(places: Places, steps: HostSteps) -> Int64:
    """Return the outermost operators of the steps that a loop repeats."""
    trace, tree, is_operator = places.known.trace, places.known.tree, places.operators
    found: list[Int64] = [np.empty(0, np.int64)]
    for thread in by_thread(trace.host, (HostKind.OPERATOR,)):
        parent = tree.parent[thread]
        outer = thread[is_operator[thread] & ((parent < 0) | ~is_operator[parent])]
        outer = outer[steps.of(trace.host.start[outer]) >= 0]
        names = trace.host.name[outer]
        layers = matching(trace.texts, names, is_eligible)
        found.append(outer[in_loop(names, layers)].astype(np.int64))
    return np.concatenate(found)


def in_loop(names: Int32, layers: Mask) -> Mask:
    """Return which of a thread's operators, in order, belong to a run of one pattern of at most three operators.

    Parameters
    ----------
    names
        The names' ids in order of time, shape (n,).
    layers
        Which of them multiply matrices or convolve: a pattern that holds one is a network, not a loop over pieces.
    """
    looped = np.zeros(len(names), np.bool_)
    for period in PERIODS:
        same = names[period:] == names[:-period]
        for first, last in _runs(same):
            if last - first + period >= SHORTEST_RUN * period and not layers[first : first + period].any():
                looped[first : last + period] = True
    return looped


def _runs(values: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return [first, last) of each run of True."""
    edges = np.diff(np.concatenate(([0], values.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def inside(trace: Trace, tree: Tree, rows: Int64, predicate: Callable[[str], bool]) -> Mask:
    """Return which rows lie, at any depth, in a row whose name `predicate` is true of."""
    wanted = matching(trace.texts, trace.host.name, predicate)
    found = np.zeros(len(rows), np.bool_)
    at = tree.parent[rows].copy()
    climbing = np.flatnonzero(at >= 0)
    while len(climbing):
        found[climbing] |= wanted[at[climbing]]
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[at[climbing] >= 0]
    return found


def device_time(places: Places) -> Int64:
    """Return for each host row how long the device rows took whose outermost operator it is (their sum), ns."""
    trace, links = places.known.trace, places.known.links
    total = np.zeros(len(trace.host), np.int64)
    known = np.flatnonzero(is_busy(trace.device) & (links.operator >= 0))
    outer = places.outermost(links.operator[known])
    np.add.at(total, outer, trace.device.duration[known])
    return total


def _between(trace: Trace, rows: Int64) -> Int64:
    """Return for each host row of `rows` the time to the next of them on its thread, 0 for all others; ns.

    A gap longer than `LONGEST_GAP` is no turn of a loop: what is between two loops belongs to neither.
    """
    host, between = trace.host, np.zeros(len(trace.host), np.int64)
    order = rows[np.lexsort((host.start[rows], host.track[rows]))]
    if len(order) > 1:
        gap = host.start[order[1:]] - (host.start[order[:-1]] + host.duration[order[:-1]])
        same = (host.track[order[1:]] == host.track[order[:-1]]) & (gap > 0) & (gap <= LONGEST_GAP)
        between[order[:-1]] = np.where(same, gap, 0)
    return between


def _repetition(
    places: Places, rows: Int64, key: tuple[str, bool, bool], times: tuple[Int64, Int64], steps: int
) -> Repetition:
    device_ns, between_ns = times
    duration = places.known.trace.host.duration
    host_ns = int(duration[rows].sum())
    return Repetition(
        name=key[0],
        calls_per_step=len(rows) / steps,
        mean_us=host_ns / len(rows) / 1000,
        host_us=host_ns / steps / 1000,
        device_us=int(device_ns[rows].sum()) / steps / 1000,
        in_loader=key[1],
        in_optimizer=key[2],
        rows=places.host_rows(longest(duration, rows)),
        between_us=int(between_ns[rows].sum()) / steps / 1000,
    )
