"""Fewer rows where a page cannot hold them all, honestly: what is merged says how many rows it stands for.

Whole are the rows of the steps that a reader wants to see in full; elsewhere neighbours of one lane and level that
are shorter than a resolution and begin in one stretch of that length become one block. A block tells how many
rows it stands for, how long they took together, and the name that took most. No time is invented: a block begins
with its first row and ends with its last, and the parts of it that were empty are known by the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.report.trace.lanes import Lane
from tracelock.trace.columns import Int64

_FIRST = 1000  # ns: the finest resolution that is tried


@dataclass(frozen=True)
class Merged:
    """A lane with at most so many rows as a page holds; shape (m,) each."""

    lane: Lane  # name, colour and row of a block are those of the name that took most, and of its longest row
    count: Int64  # rows that each stands for
    held: Int64  # ns: the sum of their durations

    def __len__(self) -> int:
        return len(self.count)


def merge(lanes: Sequence[Lane], most: int, whole: Sequence[tuple[int, int]]) -> tuple[list[Merged], int]:
    """Return `lanes` with at most `most` rows in all, and the resolution that this took, ns; 0 where all is there.

    Parameters
    ----------
    whole
        Times, since the origin, ns, in which rows are merged only if there are too many of them alone.
    """
    if sum(map(len, lanes)) <= most:
        return [_alone(lane) for lane in lanes], 0
    kept = [_touches(lane, whole) for lane in lanes]
    if sum(int(each.sum()) for each in kept) > most / 2:
        kept = [np.zeros(len(lane), np.bool_) for lane in lanes]
    resolution = _FIRST
    while True:
        found = [_coarser(lane, resolution, keep) for lane, keep in zip(lanes, kept, strict=True)]
        if sum(map(len, found)) <= most or resolution > 1 << 60:
            return found, resolution
        resolution *= 2


def _alone(lane: Lane) -> Merged:
    return Merged(lane, np.ones(len(lane), np.int64), lane.duration)


def _touches(lane: Lane, whole: Sequence[tuple[int, int]]) -> Mask:
    inside = np.zeros(len(lane), np.bool_)
    for low, high in whole:
        inside |= (lane.start < high) & (lane.start + lane.duration >= low)
    return inside


def _coarser(lane: Lane, resolution: int, keep: Mask) -> Merged:
    """Return the lane with its short rows merged: those of one level and cell, and on the same side of `keep`."""
    cell = lane.start // resolution
    free = keep | (lane.duration >= resolution)
    breaks = np.ones(len(lane), np.bool_)
    if len(lane):
        same = (cell[1:] == cell[:-1]) & (lane.level[1:] == lane.level[:-1]) & (_cause(lane)[1:] == _cause(lane)[:-1])
        breaks[1:] = free[1:] | free[:-1] | ~same
    first = np.flatnonzero(breaks)
    if not len(first):
        return _alone(lane)
    return _blocks(lane, first, np.cumsum(breaks) - 1)


def _cause(lane: Lane) -> Int64:
    """Return what may not be mixed in one block: the causes of idle time."""
    return lane.text if lane.kind == "idle" else np.zeros(len(lane), np.int64)


def _blocks(lane: Lane, first: Int64, block: Int64) -> Merged:
    count = np.diff(np.append(first, len(lane)))
    held = np.add.reduceat(lane.duration, first)
    end = np.maximum.reduceat(lane.start + lane.duration, first)
    found = lane.take(_most(lane, block, len(first)))
    shown = Lane(
        lane.name, lane.kind, lane.group, lane.start[first], end - lane.start[first], lane.level[first],
        found.text, found.color, np.where(count == 1, found.row, -1),
    )  # fmt: skip
    return Merged(shown, count, held)


def _most(lane: Lane, block: Int64, blocks: int) -> Int64:
    """Return for each block a row of the name that took most of its time."""
    name = lane.text - int(lane.text.min())
    key = block * (int(name.max()) + 1) + name
    distinct, first, member = np.unique(key, return_index=True, return_inverse=True)
    total = np.bincount(member.reshape(-1), lane.duration, minlength=len(distinct))
    owner = block[first]
    order = np.lexsort((total, owner))  # the last of each block has most
    last = np.append(np.flatnonzero(np.diff(owner[order])), len(order) - 1)
    found = np.empty(blocks, np.int64)
    found[owner[order[last]]] = first[order[last]]
    return found
