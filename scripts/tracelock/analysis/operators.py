"""What operators cost: their own time and that of what they called, on the host and on the device.

Own host time is the row less the rows inside it (operators, labelled regions, runtime calls). Device time is the sum of
the kernels, copies and sets that were launched inside the row. A call inside a call of the same name (and
shapes, and stack, where rows are kept apart by these) adds to the calls and to the own time, not again to the total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.analysis.groups import Groups, group
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import Links, is_busy
from tracelock.analysis.model import Operator, OperatorGroup
from tracelock.analysis.names import is_loading, is_step, matching
from tracelock.analysis.nesting import Tree, of_kinds, outermost
from tracelock.analysis.stacks import Stacks
from tracelock.analysis.steps import MARKED, Windows
from tracelock.trace.columns import HostKind, HostRows, Int32, Int64, Trace


@dataclass(frozen=True)
class CallTable:
    """Sums over groups of host rows, shape (g,) each; ns."""

    groups: Groups
    self_host: Int64
    total_host: Int64
    self_device: Int64
    total_device: Int64
    allocated: Int64 | None  # bytes

    def order(self) -> Int64:
        """Return the groups by their own time on host and device, most expensive first."""
        return np.argsort(-(self.self_host + self.self_device), kind="stable")


@dataclass(frozen=True)
class Calls:
    """What the tables of calls are made from."""

    trace: Trace
    tree: Tree
    links: Links
    windows: Windows
    allocated: Int64 | None = None  # bytes that each host row allocated itself; None where it was not recorded


def operator_rows(trace: Trace) -> Mask:
    """Return which host rows are operators; loading is one in every year's spelling."""
    host = trace.host
    labels = of_kinds(host, (HostKind.ANNOTATION,))
    return of_kinds(host, (HostKind.OPERATOR,)) & ~_steps(trace) | labels & matching(trace.texts, host.name, is_loading)


def label_rows(trace: Trace) -> Mask:
    """Return which host rows are regions that the user or the framework labelled (``record_function``)."""
    labels = of_kinds(trace.host, (HostKind.ANNOTATION,)) & ~_steps(trace)
    return labels & ~matching(trace.texts, trace.host.name, is_loading)


def runtime_rows(trace: Trace) -> Mask:
    """Return which host rows are calls of the device's runtime or driver."""
    return of_kinds(trace.host, (HostKind.RUNTIME, HostKind.DRIVER))


def _steps(trace: Trace) -> Mask:
    return matching(trace.texts, trace.host.name, is_step)


def tabulate(calls: Calls, rows: Int64, groups: Groups) -> CallTable:
    """Return the sums over `groups` of the host rows at the positions `rows`."""
    host, tree = calls.trace.host, calls.tree
    group_of = np.full(len(host), -1, np.int32)
    group_of[rows] = groups.member
    outer = outermost(group_of, tree.parent, rows)
    return CallTable(
        groups,
        groups.total(tree.self_time[rows]),
        groups.total(np.where(outer, host.duration[rows], 0)),
        _self_device(calls, group_of, len(groups)),
        _total_device(calls, group_of, rows[outer], len(groups)),
        None if calls.allocated is None else groups.total(calls.allocated[rows]),
    )


def _self_device(calls: Calls, group_of: Int32, count: int) -> Int64:
    """Sum the work of each group's own: what was launched with no other call of these rows in between."""
    device, at = calls.trace.device, calls.links.caller.copy()
    work = np.flatnonzero(is_busy(device) & (at >= 0))
    at = at[work]
    while len(pending := np.flatnonzero((at >= 0) & (group_of[at] < 0))):
        at[pending] = calls.tree.parent[at[pending]]
    found = at >= 0
    weights = device.duration[work[found]]
    return np.bincount(group_of[at[found]], weights=weights, minlength=count).astype(np.int64)


def _total_device(calls: Calls, group_of: Int32, outer: Int64, count: int) -> Int64:
    """Sum the work launched inside each group's calls, climbing from each launch through all calls around it."""
    device = calls.trace.device
    counting = np.zeros(len(group_of), np.bool_)
    counting[outer] = True
    work = np.flatnonzero(is_busy(device) & (calls.links.caller >= 0))
    at, weights = calls.links.caller[work], device.duration[work]
    total = np.zeros(count, np.int64)
    while len(at):
        counts = counting[at]
        total += np.bincount(group_of[at[counts]], weights=weights[counts], minlength=count).astype(np.int64)
        at = calls.tree.parent[at]
        weights, at = weights[at >= 0], at[at >= 0]
    return total


def by_name(calls: Calls, chosen: Mask) -> tuple[Operator, ...]:
    """Return the sums by name of the host rows that are `chosen`, most expensive first; microseconds."""
    host = calls.trace.host
    rows = np.flatnonzero(chosen)
    table = tabulate(calls, rows, group(host.name[rows]))
    return tuple(_operator(calls, table, int(each), per_step) for each, per_step in _ordered(calls, table, rows))


def by_shape(calls: Calls, chosen: Mask, top: int) -> tuple[tuple[OperatorGroup, ...], int]:
    """Return the sums by name and input shapes of the `chosen` host rows that have shapes.

    The `top` most expensive ones in order, and how many more there are.
    """
    host, texts = calls.trace.host, calls.trace.texts
    rows = np.flatnonzero(chosen & (host.shapes >= 0))
    table = tabulate(calls, rows, group(host.name[rows], host.shapes[rows]))
    shapes = table.groups.keys[1].tolist()
    order = table.order()[:top].tolist()
    return tuple(_group(calls, table, each, shapes=texts[shapes[each]]) for each in order), len(table.groups) - len(
        order
    )


def by_stack(calls: Calls, chosen: Mask, top: int) -> tuple[tuple[OperatorGroup, ...], int]:
    """Return the sums by name and call stack of the `chosen` host rows that have one.

    The `top` most expensive ones in order, and how many more there are.
    """
    host = calls.trace.host
    rows = np.flatnonzero(chosen)
    stacks = Stacks(calls.trace, rows)
    rows, ids = rows[stacks.ids >= 0], stacks.ids[stacks.ids >= 0]
    table = tabulate(calls, rows, group(host.name[rows], ids))
    one = np.zeros(len(table.groups), np.int64)
    one[table.groups.member] = rows
    order = table.order()[:top].tolist()
    texts = [stacks.text(int(one[each])) for each in order]
    rows_of = zip(order, texts, strict=True)
    return tuple(_group(calls, table, each, stack=text) for each, text in rows_of), len(table.groups) - len(order)


def _group(
    calls: Calls, table: CallTable, index: int, *, shapes: str | None = None, stack: str | None = None
) -> OperatorGroup:
    has_device = bool(len(calls.trace.device))
    return OperatorGroup(
        name=calls.trace.texts[int(table.groups.keys[0][index])],
        shapes=shapes,
        stack=stack,
        calls=int(table.groups.counts[index]),
        self_cpu_us=int(table.self_host[index]) / 1000,
        total_cpu_us=int(table.total_host[index]) / 1000,
        self_device_us=int(table.self_device[index]) / 1000 if has_device else None,
        total_device_us=int(table.total_device[index]) / 1000 if has_device else None,
    )


def _ordered(calls: Calls, table: CallTable, rows: Int64) -> list[tuple[int, float | None]]:
    per_step = _calls_per_step(calls.trace.host, calls.windows, rows, table.groups)
    return [(int(each), None if per_step is None else float(per_step[each])) for each in table.order()]


def _operator(calls: Calls, table: CallTable, index: int, per_step: float | None) -> Operator:
    has_device = bool(len(calls.trace.device))
    return Operator(
        name=calls.trace.texts[int(table.groups.keys[0][index])],
        calls=int(table.groups.counts[index]),
        self_cpu_us=int(table.self_host[index]) / 1000,
        total_cpu_us=int(table.total_host[index]) / 1000,
        self_device_us=int(table.self_device[index]) / 1000 if has_device else None,
        total_device_us=int(table.total_device[index]) / 1000 if has_device else None,
        calls_per_step=per_step,
        allocated_bytes=None if table.allocated is None else int(table.allocated[index]),
    )


def _calls_per_step(host: HostRows, windows: Windows, rows: Int64, groups: Groups) -> npt.NDArray[np.float64] | None:
    """Return how many calls of each group begin in a complete step, on average; None where no step is marked."""
    complete = np.flatnonzero(windows.complete)
    if windows.source != MARKED or not len(complete):
        return None
    begun = host.start[rows]
    at = np.searchsorted(windows.host_start, begun, side="right") - 1
    inside = (at >= 0) & (begun < windows.host_end[at]) & windows.complete[at]
    return np.bincount(groups.member[inside], minlength=len(groups)) / len(complete)
