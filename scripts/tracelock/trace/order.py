"""Which rows are usable, and the order in which they stand in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import HostKind, Int64

# Of rows with the same start and end on one thread, which one is around the other.
_OUTERMOST_FIRST: Final = (
    HostKind.PYTHON,
    HostKind.ANNOTATION,
    HostKind.OTHER,
    HostKind.OPERATOR,
    HostKind.OVERHEAD,
    HostKind.RUNTIME,
    HostKind.DRIVER,
)
_STEP: Final = 1 << 20  # rows looked at in one go
_RANK: Final = np.argsort(np.array(_OUTERMOST_FIRST)).astype(np.int8)


Column: TypeAlias = Callable[[], npt.NDArray[Any]]
"""Returns a column; it is asked for only where rows are tied, and kept no longer than that takes."""


def host_order(start: Int64, duration: Column, kind: Column, number: Column) -> Int64:
    """Return the order of host rows: by start, longest first; of equal ones outermost first, then by `number`.

    `number` is what grows with the order in which they were entered: External id, or Python id of a frame.
    """
    return _order(start, (number, lambda: _RANK[kind()], lambda: -duration()))


def device_order(start: Int64, duration: Column, stream: Column) -> Int64:
    """Return the order of device rows: by start, longest first, then by stream."""
    return _order(start, (stream, lambda: -duration()))


def time_order(time: Int64) -> Int64:
    """Return the order of records with one time; equal ones stay as they stand in the file."""
    return np.argsort(time, kind="stable")


def _order(start: Int64, keys: tuple[Column, ...]) -> Int64:
    """Sort by start, then by the keys (last one first), then by position; only ties look at the keys."""
    order = np.argsort(start)
    places = _tied(start, order)
    if len(places):
        some = order[places]
        order[places] = some[np.lexsort((some, *(key()[some] for key in keys), start[some]))]
    return order


def _tied(start: Int64, order: Int64) -> Int64:
    """Return the positions in `order` whose rows start when a neighbour does."""
    tied = np.zeros(len(order), dtype=bool)
    for first in range(0, len(order), _STEP):
        ordered = start[order[first : first + _STEP + 1]]
        (equal,) = np.nonzero(ordered[1:] == ordered[:-1])
        tied[first + equal] = True
        tied[first + equal + 1] = True
    return np.flatnonzero(tied)


def median(values: npt.NDArray[Any]) -> float:
    """Return the median of one or more numbers: what `numpy.median` returns, without the module that it loads."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    low, high = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1]
    return (float(low) + float(high)) / 2
