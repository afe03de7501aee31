"""Which row of a thread lies inside which: the tree of calls, from times alone.

The parent of a row is the innermost row that is still open when it starts: of the rows before it on the same
thread (by start, then longest first), the last one whose end lies after its start. Rows that cross their parent's end
(clocks of whole microseconds do that, and frames that end after the step they began in) stay its children.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.trace.columns import HostKind, HostRows, Int32, Int64

CALLS = (HostKind.OPERATOR, HostKind.ANNOTATION, HostKind.RUNTIME, HostKind.DRIVER)


@dataclass(frozen=True)
class Tree:
    """The rows of some kinds, nested; both columns have the length of the host rows."""

    kinds: tuple[HostKind, ...]
    parent: Int32  # position of the parent among the host rows; -1 for outermost rows and rows of other kinds
    self_time: Int64  # ns: duration less what the children cover of it; 0 for rows of other kinds


def of_kinds(host: HostRows, kinds: Collection[HostKind]) -> Mask:
    """Return which host rows are of `kinds`."""
    wanted = np.zeros(max(HostKind) + 1, np.bool_)
    wanted[[int(kind) for kind in kinds]] = True
    return wanted[host.kind]


def by_thread(host: HostRows, kinds: Collection[HostKind]) -> Iterator[Int32]:
    """Yield the positions of the rows of `kinds`, a thread at a time, by start and then longest first."""
    rows = np.flatnonzero(of_kinds(host, kinds)).astype(np.int32)
    track = host.track[rows]
    small = track.astype(np.uint16) if len(track) and int(track.max()) < 2**16 else track  # sorted by counting
    rows = rows[np.argsort(small, kind="stable")]
    bounds = np.flatnonzero(np.diff(host.track[rows])) + 1
    yield from (part for part in np.split(rows, bounds) if len(part))


def nest(host: HostRows, kinds: tuple[HostKind, ...] = CALLS) -> Tree:
    """Return the tree of the rows of `kinds`, each thread by itself."""
    parent = np.full(len(host), -1, np.int32)
    self_time = np.zeros(len(host), np.int64)
    for rows in by_thread(host, kinds):
        start = host.start[rows]
        end = start + host.duration[rows]
        local = parents(start, end)
        self_time[rows] = own_times(start, end, local)
        parent[rows] = np.where(local < 0, np.int32(-1), rows[local])
    return Tree(kinds, parent, self_time)


def parents(start: Int64, end: Int64) -> Int32:
    """Return the position of each row's parent, -1 for outermost rows.

    Parameters
    ----------
    start, end
        The rows of one thread by start, then longest first; shape (n,), ns.

    Notes
    -----
    Each row begins at the row before it and climbs for as long as it stands at one that has ended. Where that row has
    climbed already, its own place is the next to try: everything between the two ended earlier. All rows climb
    at once, so a flat list of n rows takes log2(n) rounds and the work stays near n.
    """
    above = np.arange(-1, len(start) - 1, dtype=np.int32)
    climbing = np.flatnonzero(end[:-1] <= start[1:]) + 1
    while len(climbing):
        at = above[above[climbing]]
        above[climbing] = at
        climbing = climbing[(at >= 0) & (end[at] <= start[climbing])]
    return above


def own_times(start: Int64, end: Int64, parent: Int32) -> Int64:
    """Return how long each row was the innermost: its duration less what the rows begun inside it cover, ns.

    The own times of a thread add up to the time that its rows cover, however they cross.
    """
    low, high, above = inner_parts(start, end, parent)
    covered = np.bincount(above, weights=high - low, minlength=len(start))  # exact below 2**53 ns = 104 days
    return end - start - covered.astype(np.int64)


def inner_parts(start: Int64, end: Int64, parent: Int32) -> tuple[Int64, Int64, Int32]:
    """Return for each row that has a parent what it and the rows inside it cover of the parent: start, end, parent."""
    child = np.flatnonzero(parent >= 0)
    above = parent[child]
    return start[child], np.minimum(_reach(end, parent)[child], end[above]), above


def _reach(end: Int64, parent: Int32) -> Int64:
    """Return the latest end of each row and all rows inside it; another than its own only where rows cross."""
    reach = end.copy()
    child = np.flatnonzero(parent >= 0)
    child = child[end[child] > end[parent[child]]]
    while len(child):
        above = parent[child]
        np.maximum.at(reach, above, reach[child])
        child = np.unique(above[parent[above] >= 0])
        child = child[reach[child] > reach[parent[child]]]
    return reach


def outermost(label: Int32, parent: Int32, rows: Int64) -> Mask:
    """Return which of `rows` lie in no row of their own label, so that recursion is counted once; shape of `rows`.

    Parameters
    ----------
    label
        A name or a group of each host row.

    """
    free = np.ones(len(rows), np.bool_)
    seeking = np.flatnonzero(parent[rows] >= 0)
    at = parent[rows[seeking]]
    while len(seeking):
        same = label[at] == label[rows[seeking]]
        free[seeking[same]] = False
        at = parent[at]
        going = ~same & (at >= 0)
        seeking, at = seeking[going], at[going]
    return free
