"""Loops in a sequence of operators: a pattern of any length that repeats with nothing between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask
from tracelock.trace.columns import Int32

FEWEST_TURNS = 8
FEWEST_OPERATORS = 32  # of all turns: networks repeat, too
PERIODS = 48  # candidates that are looked at: the commonest distances between two calls of one operator


@dataclass(frozen=True)
class Run:
    """Positions [first, last) of a sequence in which a pattern of `period` repeats."""

    first: int
    last: int
    period: int

    @property
    def turns(self) -> int:
        """Return how often the pattern occurs."""
        return (self.last - self.first) // self.period


def runs(names: Int32) -> list[Run]:
    """Return the loops of a sequence, none of which overlaps another, in order.

    Parameters
    ----------
    names
        Ids of operators in order of time, shape (n,).

    Notes
    -----
    A pattern of p operators repeats where ``names[i] == names[i + p]`` for long enough. Only such p are tried as occur
    often as the distance from a call to the next one of the same operator: the rarest operator of a pattern is called
    once a turn. Shorter patterns come first, and what they took is taken.
    """
    taken = np.zeros(len(names), np.bool_)
    found: list[Run] = []
    for period in _candidates(names):
        same = (names[period:] == names[:-period]) & ~taken[period:] & ~taken[:-period]
        for first, last in stretches(same):
            run = Run(first, last + period, period)
            if run.turns >= FEWEST_TURNS and run.last - run.first >= FEWEST_OPERATORS:
                found.append(run)
                taken[run.first : run.last] = True
    return sorted(found, key=lambda run: run.first)


def _candidates(names: Int32) -> list[int]:
    """Return the distances between calls of one operator that occur often, the shortest first."""
    order = np.argsort(names, kind="stable")
    again = names[order][1:] == names[order][:-1]
    distances = np.diff(order)[again]
    values, counts = np.unique(distances, return_counts=True)
    often = counts >= FEWEST_TURNS - 1
    commonest = np.argsort(-counts[often], kind="stable")[:PERIODS]
    return sorted(int(each) for each in values[often][commonest])


def stretches(values: Mask) -> list[tuple[int, int]]:
    """Return [first, last) of each run of True."""
    edges: npt.NDArray[np.int8] = np.diff(np.concatenate(([0], values.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))
