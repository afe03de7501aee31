"""Rows that cannot be true: negative durations, zero times, ends years away, kernels that outlast their stream.

They are excluded, counted and named in the warnings of a trace, so that no figure rests on them in silence.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import DeviceKind, Int8, Int64
from tracelock.trace.tally import Tally

Mask = npt.NDArray[np.bool_]

YEAR_NS: Final = 365 * 86_400 * 10**9
HOUR_NS: Final = 3_600 * 10**9
ZERO_ROWS: Final = 1000  # rows with ts = dur = 0 that make them suspect even where the clock begins near 0
OVERRUN: Final = 100  # times the distance to the next row of the stream
OVERRUN_ROWS: Final = 3  # rows of the stream that begin before the end
OUTLAST: Final = 10  # times the span of all other rows of the table


def usable_times(time: Int64, centre: float, tally: Tally) -> Mask:
    """Return which records lie within a year of `centre` (median start of all rows, ns)."""
    far = np.abs(time - centre) > YEAR_NS
    tally.add("far-away", int(np.count_nonzero(far)))
    good: Mask = ~far
    return good


def usable_host(start: Int64, duration: Int64, centre: float, tally: Tally) -> Mask:
    """Return which rows have a duration, and start and end within a year of `centre`; count the others."""
    if _all_usable(start, duration, centre):
        return np.ones(len(start), dtype=np.bool_)
    negative: Mask = duration < 0
    zero: Mask = ~negative & (start == 0)
    # float64: the end of a row may lie beyond int64
    far: Mask = ~negative & ~zero & (np.abs(start - centre) + duration.astype(np.float64) > YEAR_NS)
    if abs(centre) < HOUR_NS:
        zero &= duration == 0
        zero &= np.count_nonzero(zero) >= ZERO_ROWS
    tally.add("negative-duration", int(np.count_nonzero(negative)))
    tally.add("zero-timestamp", int(np.count_nonzero(zero)))
    tally.add("far-away", int(np.count_nonzero(far)))
    good: Mask = ~(negative | zero | far)
    return good


def _all_usable(start: Int64, duration: Int64, centre: float) -> bool:
    """Return whether no row can be at fault, judged by the extremes alone: that takes no memory."""
    if not len(start) or duration.min() < 0 or start.min() <= 0:
        return False
    away = max(abs(float(start.min()) - centre), abs(float(start.max()) - centre))
    return away + float(duration.max()) <= YEAR_NS


def usable_device(rows: dict[str, Int64], kind: Int8, centre: float, tally: Tally) -> Mask:
    """Return which device rows are usable; count the others.

    Besides what `usable_host` tests: kernels, copies and sets of one stream run one after another, so a row that
    lasts orders of magnitude longer than the distance to the next row of its stream is a mistake of the profiler.
    Rows of one graph launch may overlap on a stream, and the next kernel may begin a little before the end
    (programmatic dependent launch): the first are not tested, and a single early row is not enough.

    Parameters
    ----------
    rows
        Columns start, duration (ns), track, stream, correlation, graph; shape (n,) each.
    kind
        DeviceKind of each row.
    centre
        Median start of all rows, ns.
    """
    good = usable_host(rows["start"], rows["duration"], centre, tally)
    unset: Mask = good & (rows["start"] == 0) & (rows["duration"] == 0)  # no device works at 0 for no time
    tally.add("zero-timestamp", int(np.count_nonzero(unset)))
    good &= ~unset
    (work,) = np.nonzero(good & (kind <= DeviceKind.MEMSET))
    if not len(work):
        return good
    start, duration, track, stream = (rows[name][work] for name in ("start", "duration", "track", "stream"))
    order = np.lexsort((start, stream, track))
    work, start, duration, track, stream = (column[order] for column in (work, start, duration, track, stream))
    end = start + duration

    def starts_before_end(ahead: int) -> Mask:
        found = np.zeros(len(start), dtype=bool)
        same = (track[ahead:] == track[:-ahead]) & (stream[ahead:] == stream[:-ahead])
        found[:-ahead] = same & (start[ahead:] < end[:-ahead])
        return found

    gap = np.maximum(np.diff(start, append=start[-1:]), 1000)
    overruns = starts_before_end(1) & (duration > OVERRUN * gap) & ~_of_graphs(rows, work)
    if not overruns.any():
        return good
    others = ~overruns
    span = int(end[others].max(initial=0) - start[others].min(initial=end.max())) if others.any() else 0
    impossible = overruns & (starts_before_end(OVERRUN_ROWS) | (duration > OUTLAST * max(span, 1)))
    tally.add("impossible-duration", int(np.count_nonzero(impossible)))
    good[work[impossible]] = False
    return good


def _of_graphs(rows: dict[str, Int64], work: Int64) -> Mask:
    """Return which rows belong to a graph launch: they name it, or share its correlation id."""
    correlation = rows["correlation"][work]
    _, inverse, counts = np.unique(correlation, return_inverse=True, return_counts=True)
    return (rows["graph"][work] >= 0) | ((correlation > 0) & (counts[inverse] > 1))
