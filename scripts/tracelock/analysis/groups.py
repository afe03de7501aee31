"""Sums over rows that agree in their ids, exactly: int64 in, int64 out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import Int32, Int64

Ids = npt.NDArray[np.signedinteger[Any]]
_TABLE = 1 << 22  # different pairs of ids that a table is spent on


@dataclass(frozen=True)
class Groups:
    """Rows that agree in their ids."""

    keys: tuple[Int64, ...]  # of each column, the id of each group; shape (g,)
    member: Int32  # the group of each row, shape (n,)
    counts: Int64  # rows in each group, shape (g,)

    def __len__(self) -> int:
        return len(self.counts)

    def total(self, values: Int64) -> Int64:
        """Return the sum of `values` by group; exact as long as each stays below 2**53 (104 days of ns)."""
        return np.bincount(self.member, weights=values, minlength=len(self)).astype(np.int64)

    def least(self, values: Int64) -> Int64:
        """Return the smallest of `values` by group."""
        found = np.full(len(self), np.iinfo(np.int64).max)
        np.minimum.at(found, self.member, values)
        return found

    def most(self, values: Int64) -> Int64:
        """Return the largest of `values` by group."""
        found = np.full(len(self), np.iinfo(np.int64).min)
        np.maximum.at(found, self.member, values)
        return found


def group(*columns: Ids) -> Groups:
    """Return the groups of rows that agree in all `columns`: ids of at least -1, shape (n,) each."""
    codes = [_dense(column.astype(np.int64) + 1) for column in columns]
    member, distinct = reduce(_pair, codes)
    counts = np.bincount(member, minlength=len(distinct))
    sample = np.empty(len(counts), np.int64)
    sample[member] = np.arange(len(member))
    keys = tuple(column[sample].astype(np.int64) for column in columns)
    return Groups(keys, member.astype(np.int32), counts)


def _dense(values: Int64) -> tuple[Int64, Int64]:
    """Return for each value its place among the different ones, and those in order."""
    if int(values.max(initial=0)) > max(_TABLE, 2 * len(values)):
        distinct, member = np.unique(values, return_inverse=True)
        return member.reshape(-1), distinct
    distinct = np.flatnonzero(np.bincount(values))
    place = np.zeros(int(values.max(initial=0)) + 1, np.int64)
    place[distinct] = np.arange(len(distinct))
    return place[values], distinct


def _pair(left: tuple[Int64, Int64], right: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
    return _dense(left[0] * len(right[1]) + right[0])
