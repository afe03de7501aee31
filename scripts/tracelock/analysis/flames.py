"""Calls added up by their path from outside: what a flame graph draws.

A node is a path of names (the calls around it, then its own). Its time is the sum over all rows with that path; what
it spends itself is its time less that of the nodes inside it. Rows of one path never hold each other, so that
recursion becomes depth and nothing is counted twice.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask
from tracelock.analysis.nesting import Tree
from tracelock.analysis.stacks import path_digests, scatter
from tracelock.trace.columns import Int32, Int64, Trace

MOST = 4000  # nodes that a picture can show


@dataclass(frozen=True)
class Flame:
    """The nodes of a flame graph, outer ones before those inside them; shape (n,) each.

    `left_out` is the number of paths that are too short to be drawn; their time is in the nodes around them.
    """

    name: Int32  # id in Trace.texts; -1 for rows without a name
    parent: Int32  # position of the node around it, -1 for outermost ones
    total: Int64  # ns (or whatever the weights were)
    calls: Int64
    left_out: int

    def __len__(self) -> int:
        return len(self.name)

    @property
    def own(self) -> Int64:
        """Return the time of each node less that of the nodes inside it, those left out included in it; ns."""
        own = self.total.copy()
        inner = self.parent >= 0
        np.subtract.at(own, self.parent[inner], self.total[inner])
        return np.maximum(own, 0)


def flame(trace: Trace, tree: Tree, chosen: Mask, weight: Int64 | None = None, most: int = MOST) -> Flame:
    """Return the flame graph of the host rows that are `chosen`.

    Parameters
    ----------
    tree
        The nesting that holds these rows. Rows around them that are not chosen (steps) are passed over.
    chosen
        Which host rows count, shape (host,).
    weight
        What each row adds of itself, shape (host,), such as the device time that it launched: a node then has what
        it and the nodes inside it add. Where None, a node has the duration of its rows.
    """
    rows = np.flatnonzero(chosen)
    outer = _places(rows, innermost_around(tree.parent, rows, chosen))
    name = trace.host.name[rows]
    times = trace.host.duration[rows] if weight is None else _cumulated(weight[rows], outer)
    _, first, member = np.unique(path_digests(scatter(name), outer.copy()), return_index=True, return_inverse=True)
    member = member.reshape(-1)
    total = np.bincount(member, times, minlength=len(first)).astype(np.int64)
    around = outer[first]
    parent = np.where(around >= 0, member[around] if len(member) else -1, -1).astype(np.int32)
    return _largest(name[first], parent, total, np.bincount(member, minlength=len(first)).astype(np.int64), most)


def innermost_around(parent: Int32, rows: Int64, wanted: Mask) -> Int32:
    """Return the innermost wanted row around each of `rows`, -1 without."""
    found = parent[rows].copy()
    climbing = np.flatnonzero(found >= 0)
    while len(climbing := climbing[~wanted[found[climbing]]]):
        found[climbing] = parent[found[climbing]]
        climbing = climbing[found[climbing] >= 0]
    return found


def _places(rows: Int64, wanted: Int32) -> Int32:
    place = np.searchsorted(rows, wanted).astype(np.int32)
    place[wanted < 0] = -1
    return place


def _cumulated(weight: Int64, outer: Int32) -> Int64:
    """Return the weight of each row and of all rows inside it. A row stands after the one around it."""
    total = weight.astype(np.int64)
    for level in reversed(_levels(outer)):
        np.add.at(total, outer[level], total[level])
    return total


def _levels(outer: Int32) -> list[npt.NDArray[np.intp]]:
    """Return the rows by depth, from those one level below the outermost on."""
    depth = depths(outer)
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 2))
    return [order[low:high] for low, high in itertools.pairwise(bounds)]


def depths(outer: Int32) -> Int32:
    """Return how many rows are around each row, shape (n,); `outer` is the row around it, -1 without."""
    depth = np.zeros(len(outer), np.int32)
    at = outer.copy()
    climbing = np.flatnonzero(at >= 0)
    while len(climbing):
        depth[climbing] += 1
        at[climbing] = outer[at[climbing]]
        climbing = climbing[at[climbing] >= 0]
    return depth


def _largest(name: Int32, parent: Int32, total: Int64, calls: Int64, most: int) -> Flame:
    """Return the `most` nodes with most time, each with all nodes around it, ordered from outside."""
    depth = depths(parent)
    chosen = np.zeros(len(name), np.bool_)
    chosen[np.argsort(-total, kind="stable")[:most]] = True
    chosen &= total > 0
    for level in range(int(depth.max(initial=0)), 0, -1):  # an inner row may outlast the one around it
        inner = np.flatnonzero((depth == level) & chosen)
        chosen[parent[inner]] = True
    kept = np.flatnonzero(chosen)
    kept = kept[np.lexsort((-total[kept], depth[kept]))]
    place = np.full(len(name) + 1, -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    return Flame(name[kept], place[parent[kept]], total[kept], calls[kept], len(name) - len(kept))
