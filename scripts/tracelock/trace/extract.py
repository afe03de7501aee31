"""Columns from lists of decoded events: the fast way for what traces hold, the careful way for what else they may."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tracelock.trace import times
from tracelock.trace.columns import Float32, Int32, Int64
from tracelock.trace.context import Context
from tracelock.trace.events import NO_JSON, Args, Event

Columns: TypeAlias = dict[str, npt.NDArray[Any]]
Getter: TypeAlias = "attrgetter[Any]"

_ts, _dur, _name = attrgetter("ts"), attrgetter("dur"), attrgetter("name")
_lane = attrgetter("pid", "tid")
_shapes, _types, _stack = attrgetter("shapes"), attrgetter("types"), attrgetter("stack")


def getters(*names: str) -> dict[str, Getter]:
    """Return a getter for each attribute, by its name."""
    return {name: attrgetter(name) for name in names}


def starts(context: Context, rows: Sequence[Event]) -> Int64:
    """Return the times of events in ns, `times.MISSING` where there is none."""
    values = list(map(_ts, rows))
    if values and type(values[0]) is type(NO_JSON):
        return times.nanoseconds_of_digits(values, context.tally)
    return times.nanoseconds(values, context.tally, digits_kept=False)


def durations(context: Context, rows: Sequence[Event]) -> Int64:
    """Return the durations of events in ns, `times.MISSING` where there is none."""
    return times.nanoseconds(list(map(_dur, rows)), context.tally)


def names(context: Context, rows: Sequence[Event]) -> Int32:
    """Return the ids of the names of events."""
    texts = context.texts
    ids = np.fromiter(map(texts.__getitem__, map(_name, rows)), dtype=np.int32, count=len(rows))
    if None in texts:
        context.tally.add("no-name", sum(row.name is None for row in rows))
    return ids


def lanes(context: Context, rows: Sequence[Event]) -> Int32:
    """Return the ids of the tracks of events."""
    return np.fromiter(map(context.tracks.__getitem__, map(_lane, rows)), dtype=np.int32, count=len(rows))


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
    """Return shapes, types and call stacks of operators as ids of texts; a column that no row has is left out."""
    columns: Columns = {}
    for name, get, ids in (
        ("shapes", _shapes, context.texts),
        ("types", _types, context.texts),
        ("stack", _stack, context.stacks),
    ):
        values = list(map(get, args))
        if values.count(NO_JSON) < len(values):
            found = map(ids.__getitem__, map(bytes, values))
            columns[name] = np.fromiter(found, dtype=np.int32, count=len(values))
    return columns
