"""Which row of a thread lies inside which: the tree of calls, from times alone.

The parent of a row is the innermost row that is still open when it starts: of the rows before it on the same
thread (by start, then longest first), the last one whose end lies after its start. Rows that cross their parent's end
(clocks of whole microseconds do that, and frames that end after the step they began in) stay its children.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from tracelock.analysis.intervals import Mask, chunks
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
        start, end = times(host, rows)
        local = parents(start, end)
        self_time[rows] = own_times(start, end, local)
        parent[rows] = to_rows(local, rows)
    return Tree(kinds, parent, self_time)


def times(host: HostRows, rows: Int32 | Int64) -> tuple[Int64, Int64]:
    """Return start and end of the rows at some positions, ns."""
    start = host.start[rows]
    end = host.duration[rows]
    end += start
    return start, end


def to_rows(local: Int32, rows: Int32) -> Int32:
    """Return positions among some rows as positions among all host rows; -1 stays."""
    found = rows[local]
    found[local < 0] = -1
    return found


def parents(start: Int64, end: Int64) -> Int32:
    """Return the position of each row's parent, -1 for outermost rows.

    Parameters
    ----------
    start, end
        The rows of one thread by start, then longest first; shape (n,), ns.

    """
    above = np.empty(len(start), np.int32)
    around = np.empty(0, np.int32)  # the last row so far and all rows around it, outermost first
    for part in chunks(len(start)):
        rows = np.concatenate((around, np.arange(part.start, part.stop, dtype=np.int32)))
        found = _climb(start[rows], end[rows])[len(around) :]
        above[part] = np.where(found < 0, np.int32(-1), rows[found])
        around = _with_ancestors(above, part.stop - 1)
    return above


def _climb(start: Int64, end: Int64) -> Int32:
    """Let each row begin at the row before it, and climb for as long as it stands at one that has ended.

    Where that row has climbed already, its own place is the next to try: everything between the two ended earlier. All
    rows climb at once, so a flat list of n rows takes log2(n) rounds and the work stays near n.
    """
    above = np.arange(-1, len(start) - 1, dtype=np.int32)
    climbing = np.flatnonzero(end[:-1] <= start[1:]) + 1
    while len(climbing):
        at = above[above[climbing]]
        above[climbing] = at
        climbing = climbing[(at >= 0) & (end[at] <= start[climbing])]
    return above


def _with_ancestors(above: Int32, row: int) -> Int32:
    chain = []
    while row >= 0:
        chain.append(row)
        row = int(above[row])
    return np.array(chain[::-1], np.int32)


def own_times(start: Int64, end: Int64, parent: Int32) -> Int64:
    """Return how long each row was the innermost: its duration less what the rows begun inside it cover, ns.

    The own times of a thread add up to the time that its rows cover, however they cross.
    """
    own = end - start
    for low, high, above in inner_parts(start, end, parent):
        np.subtract.at(own, above, high - low)
    return own


def inner_parts(start: Int64, end: Int64, parent: Int32) -> Iterator[tuple[Int64, Int64, Int32]]:
    """Yield, a chunk at a time, what each row that has a parent covers of it together with the rows inside.

    The parts of one parent do not overlap. Start, end (ns) and parent, shape (k,) each.
    """
    reach = _reach(end, parent)
    for part in chunks(len(start)):
        child = np.flatnonzero(parent[part] >= 0) + part.start
        above = parent[child]
        yield start[child], np.minimum(reach[child], end[above]), above


def _reach(end: Int64, parent: Int32) -> Int64:
    """Return the latest end of each row and all rows inside it: its own unless rows cross."""
    crossing = [_crossing(end, parent, part) for part in chunks(len(end))]
    child = np.concatenate(crossing) if crossing else np.empty(0, np.int64)
    reach = end.copy() if len(child) else end
    while len(child):
        above = parent[child]
        np.maximum.at(reach, above, reach[child])
        child = np.unique(above[parent[above] >= 0])
        child = child[reach[child] > reach[parent[child]]]
    return reach


def _crossing(end: Int64, parent: Int32, part: slice) -> Int64:
    child = np.flatnonzero(parent[part] >= 0) + part.start
    crossing: Int64 = child[end[child] > end[parent[child]]]
    return crossing


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
