"""Who allocated: the innermost operator on the thread of each record, and what it never gave back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracelock.analysis.groups import Groups, group
from tracelock.analysis.levels import Levels
from tracelock.analysis.marked import HostSteps
from tracelock.analysis.names import is_step, matching
from tracelock.analysis.nesting import Tree, by_thread, of_kinds
from tracelock.analysis.sections import MemoryOwner
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

ALLOCATING = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "resize_", "resize_as_")
)
NEVER = np.iinfo(np.int64).max


def innermost(trace: Trace, tree: Tree, time: Int64, track: npt.NDArray[np.integer]) -> Int64:
    """Return the host row of the innermost operator open at each `time` (ns) on each `track`, or -1.

    A row is open from its start to its end, both included: clocks of whole microseconds put many allocations on the
    very end of the operator that made them. Steps, which old traces list as operators, are none.
    """
    host = trace.host
    row = np.full(len(time), -1, np.int64)
    for lane in by_thread(host, tree.kinds):
        asked = np.flatnonzero(track == host.track[lane[0]])
        last = np.searchsorted(host.start[lane], time[asked], side="right") - 1
        row[asked] = np.where(last < 0, -1, lane[last])
    wanted = of_kinds(host, (HostKind.OPERATOR,)) & ~matching(trace.texts, host.name, is_step)
    climbing = np.flatnonzero(row >= 0)
    while len(climbing):
        at = row[climbing]
        open_ = wanted[at] & (host.start[at] + host.duration[at] >= time[climbing])
        climbing = climbing[~open_]
        row[climbing] = tree.parent[at[~open_]]
        climbing = climbing[row[climbing] >= 0]
    return row


def allocated_by_row(trace: Trace, tree: Tree) -> Int64:
    """Return how many bytes each host row allocated itself, on all devices together; frees not subtracted."""
    grown = trace.memory.bytes > 0
    row = innermost(trace, tree, trace.memory.time[grown], trace.memory.track[grown])
    known = row >= 0
    total = np.zeros(len(trace.host), np.int64)
    np.add.at(total, row[known], trace.memory.bytes[grown][known])
    return total


def owners(
    trace: Trace, tree: Tree, levels: Levels, steps: HostSteps, *, within: bool = False
) -> tuple[MemoryOwner, ...]:
    """Return what each operator allocated of one device, for whom, most bytes first.

    Parameters
    ----------
    steps
        What is kept is known only with steps and with addresses (torch 1.10).
    within
        Look at what was allocated in `steps` alone, and not in the whole trace.

    """
    counted = (steps.of(levels.time) >= 0) if within else np.ones(len(levels.time), np.bool_)
    grown = np.flatnonzero(counted & (levels.change > 0))
    row = innermost(trace, tree, levels.time[grown], trace.memory.track[levels.rows[grown]])
    groups = group(_names(trace, row), _names(trace, _callers(trace, tree, row)))
    kept = _kept_in(trace, levels, grown, steps)
    named, called = groups.keys
    found = [
        _owner(trace, (name, caller), levels.change[grown][mine], None if kept is None else kept[mine])
        for name, caller, mine in zip(named.tolist(), called.tolist(), _members(groups), strict=True)
    ]
    return tuple(sorted(found, key=lambda owner: (-owner.allocated_bytes, owner.name, owner.caller or "")))


def _names(trace: Trace, row: Int64) -> Int32:
    return np.where(row < 0, -1, trace.host.name[row] if len(trace.host) else -1).astype(np.int32)


def _members(groups: Groups) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(groups.member, kind="stable")
    return np.split(order, np.cumsum(groups.counts)[:-1]) if len(groups) else []


def _callers(trace: Trace, tree: Tree, row: Int64) -> Int64:
    """Return the operator on whose behalf each of `row` allocates; -1 where it is the row itself, or nobody."""
    host = trace.host
    allocates = matching(trace.texts, host.name, ALLOCATING.__contains__)
    asking = of_kinds(host, (HostKind.OPERATOR,)) & ~allocates & ~matching(trace.texts, host.name, is_step)
    at = np.where(row >= 0, row, -1)
    at[at >= 0] = np.where(allocates[at[at >= 0]], at[at >= 0], -1)
    climbing = np.flatnonzero(at >= 0)
    while len(climbing):
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[at[climbing] >= 0]
        climbing = climbing[~asking[at[climbing]]]
    return at


def _owner(trace: Trace, key: tuple[int, int], size: Int64, kept: Int64 | None) -> MemoryOwner:
    name, caller = key
    held = None if kept is None else kept >= 0
    return MemoryOwner(
        name="" if name < 0 else trace.texts[name],
        allocations=len(size),
        allocated_bytes=int(size.sum()),
        kept_bytes=None if held is None else int(size[held].sum()),
        kept_steps=None if held is None or kept is None else len(np.unique(kept[held])),
        caller=None if caller < 0 else trace.texts[caller],
    )


def _kept_in(trace: Trace, levels: Levels, grown: npt.NDArray[np.intp], steps: HostSteps) -> Int64 | None:
    """Return the step in which each allocation was made that is still held at the end of the last step, else -1."""
    address = trace.memory.address[levels.rows]
    if not len(steps) or not (address[grown] != 0).all():
        return None
    return np.where(freed_at(levels, address)[grown] > steps.end[-1], steps.of(levels.time[grown]), -1)


def freed_at(levels: Levels, address: npt.NDArray[np.uint64]) -> Int64:
    """Return when what each record allocated was freed, ns: the next record of its address if that is a free.

    NEVER for what was not freed while the trace was recorded, and for records that are frees themselves.
    """
    order = np.lexsort((np.arange(len(address)), address))
    this, following = order[:-1], order[1:]
    pair = (address[this] == address[following]) & (levels.change[this] > 0) & (levels.change[following] < 0)
    freed = np.full(len(address), NEVER, np.int64)
    freed[this[pair]] = levels.time[following[pair]]
    return freed
