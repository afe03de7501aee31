"""Columns from lists of decoded events: the fast way for what traces hold, the careful way for what else they may."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tracelock.trace import times
from tracelock.trace.columns import Float32, Int32, Int64
from tracelock.trace.context import Context
from tracelock.trace.dictionary import NO_NAME
from tracelock.trace.events import NO_ARGS, NO_JSON, Args, Event

Columns: TypeAlias = dict[str, npt.NDArray[Any]]
Getter: TypeAlias = "attrgetter[Any]"

_ts, _dur, _pid, _tid = (attrgetter(name) for name in ("ts", "dur", "pid", "tid"))


class Complete(NamedTuple):
    """Complete events that have a time and a duration, and the columns that all of them have."""

    columns: Columns
    args: list[Args]
    rows: list[Event]


def getters(*names: str) -> dict[str, Getter]:
    """Return a getter for each attribute, by its name."""
    return {name: attrgetter(name) for name in names}


def times_of(context: Context, rows: Sequence[Event]) -> Int64:
    """Return the times of events in ns, `times.MISSING` where there is none."""
    values = list(map(_ts, rows))
    if values and type(values[0]) is type(NO_JSON):
        return times.nanoseconds_of_digits(values, context.tally)
    return times.nanoseconds(values, context.tally, digits_kept=False)


def tracks_of(context: Context, rows: Sequence[Event]) -> Int32:
    """Return the ids of the lanes of events."""
    return context.tracks.column(list(map(_pid, rows)), list(map(_tid, rows)))


def complete(context: Context, rows: list[Event]) -> Complete:
    """Return start, duration, name and track of complete events; those without usable times are counted."""
    start, duration = times_of(context, rows), times.nanoseconds(list(map(_dur, rows)), context.tally)
    if min(int(start.min()), int(duration.min())) == times.MISSING:
        usable = (start != times.MISSING) & (duration != times.MISSING)
        for place in np.flatnonzero(~usable).tolist():
            if rows[place].ph != "X":
                context.skip(rows[place].ph)
            else:
                context.tally.add("no-timestamp" if start[place] == times.MISSING else "no-duration")
        rows = [row for row, good in zip(rows, usable.tolist(), strict=True) if good]
        start, duration = start[usable], duration[usable]
    texts = context.texts
    name = np.array([texts[row.name] for row in rows], dtype=np.int32)
    if None in texts:
        context.tally.add("no-name", int(np.count_nonzero(name == texts[NO_NAME])))
    columns: Columns = {"start": start, "duration": duration, "name": name, "track": tracks_of(context, rows)}
    return Complete(columns, [row.args or NO_ARGS for row in rows], rows)


def integers(context: Context, args: Sequence[Args | Event], get: Getter) -> Int64:
    """Return a column of whole numbers, -1 where there is none."""
    try:
        return np.fromiter(map(get, args), dtype=np.int64, count=len(args))
    except (TypeError, ValueError, OverflowError):
        values = [-1 if value is None else value for value in map(get, args)]  # null is common: parents of root frames
    try:
        return np.fromiter(values, dtype=np.int64, count=len(args))
    except (TypeError, ValueError, OverflowError):
        return times.integers(values, context.tally)


def floats(args: Sequence[Args], get: Getter) -> Float32:
    """Return a column of numbers, NaN where there is none."""
    try:
        return np.fromiter(map(get, args), dtype=np.float32, count=len(args))
    except (TypeError, ValueError, OverflowError):
        return times.floats(list(map(get, args)))


def join_external(columns: Columns) -> None:
    """Make one column of the two spellings of the external id."""
    old = columns.pop("old_external")
    columns["external"] = np.where(columns["external"] == -1, old, columns["external"])


def text_ids(context: Context, args: Sequence[Args]) -> Columns:
    """Return shapes, types and call stacks of operators as ids of texts."""
    texts, stacks = context.texts, context.stacks
    return {
        "shapes": np.array([texts[bytes(arg.shapes)] for arg in args], dtype=np.int32),
        "types": np.array([texts[bytes(arg.types)] for arg in args], dtype=np.int32),
        "stack": np.array([stacks[bytes(arg.stack)] for arg in args], dtype=np.int32),
    }
