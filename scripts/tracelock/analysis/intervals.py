"""Sets of time as sorted, disjoint intervals: union, intersection, difference, length.

Device time is always a union of intervals, never a sum, since kernels overlap on and between streams. All times are
int64 nanoseconds; an interval [start, end) holds its start and not its end; empty intervals hold nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import Int64

Mask = npt.NDArray[np.bool_]
CHUNK = 1 << 20


@dataclass(frozen=True)
class Intervals:
    """A set of time: intervals in order, none of which overlaps or touches the next; shape (n,) each, ns."""

    start: Int64
    end: Int64

    def __len__(self) -> int:
        return len(self.start)


def _empty() -> Int64:
    return np.empty(0, np.int64)


EMPTY = Intervals(_empty(), _empty())


def union(start: Int64, end: Int64) -> Intervals:
    """Return the set that the rows [start, end) cover.

    Parameters
    ----------
    start, end
        Rows in any order, shape (n,), ns. Rows sorted by start, as those of a trace are, cost no sorting.

    """
    parts = [_union(start[part], end[part]) for part in chunks(len(start))]
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    return _union(np.concatenate([each.start for each in parts]), np.concatenate([each.end for each in parts]))


def cover(start: Int64, duration: Int64, chosen: Mask) -> Intervals:
    """Return the set that the chosen ones of the rows cover; shape (n,) each, ns. Copies a chunk at a time."""
    parts = []
    for part in chunks(len(start)):
        begun = start[part][chosen[part]]
        parts.append(_union(begun, begun + duration[part][chosen[part]]))
    return join(*parts)


def chunks(length: int) -> Iterator[slice]:
    """Yield slices of at most `CHUNK` rows that make up `length`, so that copies stay small beside the columns."""
    yield from (slice(low, min(low + CHUNK, length)) for low in range(0, length, CHUNK))


def _union(start: Int64, end: Int64) -> Intervals:
    if not len(start):
        return EMPTY
    if not _ascending(start):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.empty(len(start), np.bool_)
    opens[0] = True
    np.greater(start[1:], reach[:-1], out=opens[1:])
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(start)) - 1
    return _solid(start[first], reach[last])


def _ascending(values: Int64) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _solid(start: Int64, end: Int64) -> Intervals:
    """Drop what is empty: rows of no duration that touch nothing else."""
    kept = end > start
    return Intervals(start, end) if kept.all() else Intervals(start[kept], end[kept])


def join(*sets: Intervals) -> Intervals:
    """Return the set that any of `sets` holds."""
    filled = [each for each in sets if len(each)]
    if len(filled) < 2:
        return filled[0] if filled else EMPTY
    return union(np.concatenate([each.start for each in filled]), np.concatenate([each.end for each in filled]))


def intersect(left: Intervals, right: Intervals) -> Intervals:
    """Return the set that both hold."""
    first = np.searchsorted(right.end, left.start, side="right")
    last = np.searchsorted(right.start, left.end, side="left")
    counts = last - first
    mine = np.repeat(np.arange(len(left)), counts)
    offsets = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = first[mine] + offsets
    return _solid(np.maximum(left.start[mine], right.start[theirs]), np.minimum(left.end[mine], right.end[theirs]))


def subtract(left: Intervals, right: Intervals) -> Intervals:
    """Return the set that `left` holds and `right` does not."""
    if not len(left) or not len(right):
        return left
    return intersect(left, gaps(right, int(left.start[0]), int(left.end[-1])))


def gaps(held: Intervals, low: int, high: int) -> Intervals:
    """Return what `held` leaves free of [low, high)."""
    inner = clip(held, low, high)
    return _solid(np.concatenate(([low], inner.end)), np.concatenate((inner.start, [max(low, high)])))


def clip(held: Intervals, low: int, high: int) -> Intervals:
    """Return what `held` holds of [low, high)."""
    return _solid(np.clip(held.start, low, max(low, high)), np.clip(held.end, low, max(low, high)))


def length(held: Intervals) -> int:
    """Return how much time `held` holds, ns."""
    return int((held.end - held.start).sum())


def lengths_within(held: Intervals, low: Int64, high: Int64) -> Int64:
    """Return how much time `held` holds of each [low, high), ns, shape of `low`; 0 where high <= low."""
    within = np.zeros(len(low), np.int64)
    if not len(held):
        return within
    before = np.cumsum(held.end - held.start) - (held.end - held.start)
    for part in chunks(len(low)):
        upper = np.maximum(low[part], high[part])
        within[part] = _held_until(held, before, upper) - _held_until(held, before, low[part])
    return within


def _held_until(held: Intervals, before: Int64, time: Int64) -> Int64:
    """Return how much `held` holds before each `time`; `before` is how much it holds before each interval."""
    at = np.searchsorted(held.start, time, side="right") - 1
    known = np.maximum(at, 0)
    inside = np.clip(time - held.start[known], 0, held.end[known] - held.start[known])
    held_until: Int64 = np.where(at < 0, 0, before[known] + inside)
    return held_until
