"""Which rows are usable, and the order in which they stand in a trace."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import HostKind, Int8, Int64

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
_RANK: Final = np.argsort(np.array(_OUTERMOST_FIRST)).astype(np.int8)


def host_order(start: Int64, duration: Int64, kind: Int8, number: Int64) -> Int64:
    """Return the order of host rows: by start, longest first; of equal ones outermost first, then by `number`.

    `number` is what grows with the order in which they were entered: External id, or Python id of a frame.
    """
    return _order(start, (number, _RANK[kind], -duration))


def device_order(start: Int64, duration: Int64, stream: Int64) -> Int64:
    """Return the order of device rows: by start, longest first, then by stream."""
    return _order(start, (stream, -duration))


def time_order(time: Int64) -> Int64:
    """Return the order of records with one time; equal ones stay as they stand in the file."""
    return np.argsort(time, kind="stable")


def _order(start: Int64, keys: tuple[npt.NDArray[np.integer], ...]) -> Int64:
    """Sort by start, then by the keys (last one first), then by position; only ties look at the keys."""
    order = np.argsort(start)
    ordered = start[order]
    tied = np.zeros(len(order), dtype=bool)
    equal = ordered[1:] == ordered[:-1]
    tied[1:] |= equal
    tied[:-1] |= equal
    (places,) = np.nonzero(tied)
    some = order[places]
    order[places] = some[np.lexsort((some, *(key[some] for key in keys), start[some]))]
    return order
