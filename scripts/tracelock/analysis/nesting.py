"""Which row of a thread lies inside which: the tree of calls, from times alone.

The parent of a row is the innermost row that is still open when it starts: of the rows before it on the same
thread (by start, then longest first), the last one whose end lies after its start. Rows that cross their parent's end
(clocks of whole microseconds do that, and frames that end after the step they began in) stay its children.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask, chunks
from tracelock.trace.columns import HostKind, HostRows, Int32, Int64

_FOREVER = np.iinfo(np.int64).max
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
    rows = rows[thread_order(host.track[rows])]
    bounds = np.flatnonzero(np.diff(host.track[rows])) + 1
    yield from (part for part in np.split(rows, bounds) if len(part))


def thread_order(track: Int32) -> npt.NDArray[np.intp]:
    """Return the order that puts rows of one track together and else leaves them as they are."""
    small = track.astype(np.uint16) if len(track) and int(track.max()) < 2**16 else track  # sorted by counting
    return np.argsort(small, kind="stable")


@dataclass(frozen=True)
class Block:
    """The rows that are open at some time of a window, nested; by thread, then by start, then longest first."""

    rows: Int32  # positions among the host rows, shape (k,)
    begun: Mask  # True for rows that begin in the window, False for those open from before
    start: Int64  # ns
    end: Int64
    parent: Int32  # position of the parent within the block; -1 where no row of the block is around
    window: tuple[int, int]  # ns


def sweep(host: HostRows, chosen: Mask) -> Iterator[Block]:
    """Yield the `chosen` host rows in windows of time that follow one another and make up all of it.

    The windows are as long as it takes a chunk of rows to begin, so that what is copied stays small.
    """
    held = np.empty(0, np.int32)
    for part in chunks(len(host)):
        rows = np.concatenate((held, (np.flatnonzero(chosen[part]) + part.start).astype(np.int32)))
        high = int(host.start[part.stop]) if part.stop < len(host) else _FOREVER
        block = _block(host, rows[thread_order(host.track[rows])], part.start, (int(host.start[part.start]), high))
        yield block
        held = np.sort(block.rows[block.end > high])


def _block(host: HostRows, rows: Int32, first: int, window: tuple[int, int]) -> Block:
    start, end = times(host, rows)
    firsts = np.flatnonzero(np.diff(host.track[rows], prepend=-1))
    return Block(rows, rows >= first, start, end, parents(start, end, firsts), window)


def nest(host: HostRows, kinds: tuple[HostKind, ...] = CALLS) -> Tree:
    """Return the tree of the rows of `kinds`, each thread by itself."""
    parent = np.full(len(host), -1, np.int32)
    self_time = np.zeros(len(host), np.int64)
    for block in sweep(host, of_kinds(host, kinds)):
        self_time[block.rows] += own_times(block)
        parent[block.rows[block.begun]] = to_rows(block.parent, block.rows)[block.begun]
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


def parents(start: Int64, end: Int64, firsts: npt.NDArray[np.intp]) -> Int32:
    """Return the position of each row's parent, -1 for outermost rows.

    Parameters
    ----------
    start, end
        Rows by thread, then by start, then longest first; shape (n,), ns.
    firsts
        Where each thread's rows begin.

    Notes
    -----
    Each row begins at the row before it, and climbs for as long as it stands at one that has ended. Where that row has
    climbed already, its own place is the next to try: everything between the two ended earlier. All rows climb at
    once, so a flat list of n rows takes log2(n) rounds and the work stays near n.
    """
    above = np.arange(-1, len(start) - 1, dtype=np.int32)
    above[firsts] = -1
    climbing = np.flatnonzero(above >= 0)
    while len(climbing := climbing[end[above[climbing]] <= start[climbing]]):
        above[climbing] = above[above[climbing]]
        climbing = climbing[above[climbing] >= 0]
    return above


def own_times(block: Block) -> Int64:
    """Return how long each row was the innermost within the window: less what the rows begun inside it cover, ns.

    The own times of a thread add up to the time that its rows cover, however they cross.
    """
    low, high = block.window
    own = np.clip(block.end, low, high) - np.clip(block.start, low, high)
    begun, ended, above = inner_parts(block)
    np.subtract.at(own, above, np.clip(ended, low, high) - np.clip(begun, low, high))
    return own


def inner_parts(block: Block) -> tuple[Int64, Int64, Int32]:
    """Return for each row with a parent what it, together with the rows inside it, covers of the parent.

    The parts of one parent do not overlap. Start, end (ns) and parent, shape (m,) each.
    """
    child = np.flatnonzero(block.parent >= 0)
    above = block.parent[child]
    return block.start[child], np.minimum(_reach(block)[child], block.end[above]), above


def _reach(block: Block) -> Int64:
    """Return the latest end of each row and all rows inside it: its own unless rows cross."""
    reach, parent = block.end.copy(), block.parent
    child = np.flatnonzero(parent >= 0)
    while len(child := child[reach[child] > reach[parent[child]]]):
        above = parent[child]
        np.maximum.at(reach, above, reach[child])
        child = np.unique(above[parent[above] >= 0])
    return reach


def has_above(parent: Int32, wanted: Mask, rows: Int32 | Int64) -> Mask:
    """Return which of `rows` lie, at any depth, in a row that is `wanted`."""
    found = np.zeros(len(rows), np.bool_)
    at = parent[rows].copy()
    while len(climbing := np.flatnonzero((at >= 0) & ~found)):
        found[climbing] = wanted[at[climbing]]
        at[climbing] = parent[at[climbing]]
    return found


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
