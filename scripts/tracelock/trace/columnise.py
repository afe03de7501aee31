"""Decoded events become columns: a list of events in, batches of arrays out, one batch a kind of row.

Only what a kind of row can have is looked at: an operator has no stream, a kernel has no shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from tracelock.trace import times
from tracelock.trace.columns import FlowKind, HostKind, Int32
from tracelock.trace.context import Context
from tracelock.trace.dictionary import plain
from tracelock.trace.events import NO_ARGS, Event, collectives_in
from tracelock.trace.extract import (
    Columns,
    Getter,
    complete,
    floats,
    getters,
    integers,
    join_external,
    text_ids,
    times_of,
    tracks_of,
)
from tracelock.trace.kinds import Meaning, Table, meaning


class Batch(NamedTuple):
    """Some rows of one kind: the columns they have, shape (n,) each; columns left out are absent in every row."""

    table: Table
    kind: int
    columns: Columns


_ph, _id = attrgetter("ph"), attrgetter("id")
_OPERATOR: Final = getters("external", "sequence", "forward_thread")
_CALL: Final = getters("external", "old_external", "correlation")
_PYTHON: Final = getters("python_id", "python_parent")
_HOST: Final[dict[int, dict[str, Getter]]] = {
    HostKind.OPERATOR: _OPERATOR,
    HostKind.RUNTIME: _CALL,
    HostKind.DRIVER: _CALL,
    HostKind.ANNOTATION: _OPERATOR,
    HostKind.PYTHON: _PYTHON,
    HostKind.OVERHEAD: _CALL,
    HostKind.OTHER: _OPERATOR | _CALL | _PYTHON,
}
_WITH_TEXTS: Final = frozenset({HostKind.OPERATOR, HostKind.ANNOTATION, HostKind.OTHER})
_DEVICE: Final = _CALL | getters("device", "stream", "bytes", "graph")
_DEVICE_FLOATS: Final = getters("blocks_per_sm", "occupancy")
_MEMORY: Final = getters("device_type", "device_id", "allocation", "allocated", "reserved")
_FOREIGN: Final = Meaning(Table.HOST, HostKind.OTHER)
_FOREIGN_FLOW: Final = Meaning(Table.FLOW, FlowKind.OTHER)
_FLOW_PHASES: Final = frozenset("stf")
_NO_STREAM: Final = (0xFFFFFFFF, 0x7FFFFFFF)  # CUPTI's word for "no stream", printed as a number
_MOST_DEVICES: Final = 1024
_FAR_US: Final = 10**18


def batches(context: Context, events: Sequence[Event], text: bytes | memoryview) -> list[Batch]:
    """Return the rows of `events` by kind; `text` is the JSON array that they were decoded from.

    Raises
    ------
    NeedDigitsError
        If floats have lost digits of the times; none of these events is kept or counted then.
    """
    mark = context.mark()
    buckets: dict[str, list[Event]] = {}
    for event in events:
        category = event.cat
        if category in buckets:
            buckets[category].append(event)
        else:
            buckets[category] = [event]
    made: list[Batch] = []
    try:
        for category, rows in buckets.items():
            made += _group(context, meaning(category), rows)
    except times.NeedDigitsError:
        context.rewind(mark)
        raise
    _describe_collectives(context, made, events, text)
    context.events += len(events)
    return made


def _group(context: Context, what: Meaning, rows: list[Event]) -> list[Batch]:
    """Return the batches of one category; where that does not tell what its events are, their phases do."""
    if what.table == Table.DEVICE:
        return _device(context, what, rows)
    if what.table == Table.HOST and what.kind != HostKind.OTHER:
        return _host(context, what, rows)
    phases = set(map(_ph, rows))
    if what.table == Table.FLOW and phases <= _FLOW_PHASES:
        return _flows(context, what, rows)
    made: list[Batch] = []
    for phase in sorted(phases):
        made += _by_phase(context, what, phase, [row for row in rows if row.ph == phase])
    return made


def _by_phase(context: Context, what: Meaning, phase: str, rows: list[Event]) -> list[Batch]:
    if phase in _FLOW_PHASES:
        return _flows(context, what if what.table == Table.FLOW else _FOREIGN_FLOW, rows)
    if phase == "X":
        return _spans(context, rows) if what.table == Table.SPAN else _host(context, _FOREIGN, rows)
    if phase in "iI":
        return _instants(context, rows)
    if phase == "M":
        return _labels(context, rows)
    context.skip(phase, len(rows))
    return []


def _host(context: Context, what: Meaning, rows: list[Event]) -> list[Batch]:
    columns, args, _ = complete(context, rows)
    columns |= {name: integers(context, args, get) for name, get in _HOST[what.kind].items()}
    if "old_external" in columns:
        join_external(columns)
    if what.kind in _WITH_TEXTS:
        columns |= text_ids(context, args)
    return [Batch(Table.HOST, what.kind, columns)]


def _device(context: Context, what: Meaning, rows: list[Event]) -> list[Batch]:
    columns, args, rows = complete(context, rows)
    columns |= {name: integers(context, args, get) for name, get in _DEVICE.items()}
    columns |= {name: floats(args, get) for name, get in _DEVICE_FLOATS.items()}
    join_external(columns)
    columns["stream"][np.isin(columns["stream"], _NO_STREAM)] = -1
    columns["device"] = _ordinals(context, columns)
    if any(arg.collective is not None for arg in args):
        # The rows themselves for now: what they say of a collective is looked up in the text of the unit.
        columns["collective"] = np.array(
            [row if arg.collective is not None else None for row, arg in zip(rows, args, strict=True)], dtype=object
        )
    return [Batch(Table.DEVICE, what.kind, columns)]


def _ordinals(context: Context, columns: Columns) -> Int32:
    """Return the device of each row; where args name none, its process is the ordinal (annotations on devices)."""
    device = columns["device"]
    if (device < 0).any():
        pids = [pid if isinstance(pid, int) and 0 <= pid < _MOST_DEVICES else -1 for pid, _ in context.tracks.lanes]
        device = np.where(device < 0, np.array(pids, dtype=np.int64)[columns["track"]], device)
    return np.clip(device, -1, 2**31 - 1).astype(np.int32)


def _describe_collectives(
    context: Context, made: list[Batch], events: Sequence[Event], text: bytes | memoryview
) -> None:
    """Replace rows in the column of collectives by ids of what they say of a collective."""
    waiting = [batch.columns for batch in made if "collective" in batch.columns]
    if not waiting:
        return
    place = {id(event): number for number, event in enumerate(events)}
    described = collectives_in(text)
    for columns in waiting:
        ids = [
            -1 if row is None else context.collectives.number(described(place[id(row)]))
            for row in columns["collective"]
        ]
        columns["collective"] = np.array(ids, dtype=np.int32)


def _flows(context: Context, what: Meaning, rows: list[Event]) -> list[Batch]:
    time = times_of(context, rows)
    columns: Columns = {
        "time": time,
        "track": tracks_of(context, rows),
        "identifier": integers(context, rows, _id),
        "begins": np.array([row.ph == "s" for row in rows], dtype=np.bool_),
    }
    return [Batch(Table.FLOW, what.kind, _usable(context, columns, "time"))]


def _instants(context: Context, rows: list[Event]) -> list[Batch]:
    memory = [row for row in rows if row.name == "[memory]"]
    others = [row for row in rows if row.name != "[memory]"]
    for row in others:
        context.skip(row.ph)
        context.tally.add("out-of-memory", row.name == "[OutOfMemory]")
    context.tally.add("far-away-window", sum(_is_far_window(row) for row in others))
    return [_memory(context, memory)] if memory else []


def _is_far_window(row: Event) -> bool:
    return isinstance(row.ts, int | float) and row.ts > _FAR_US and row.name == "Record Window End"


def _memory(context: Context, rows: list[Event]) -> Batch:
    args = [row.args or NO_ARGS for row in rows]
    columns: Columns = {"time": times_of(context, rows), "track": tracks_of(context, rows)}
    columns |= {name: integers(context, args, get) for name, get in _MEMORY.items()}
    columns["bytes"] = columns.pop("allocation")
    columns["device_type"] = np.clip(columns["device_type"], -1, 127).astype(np.int8)
    columns["device"] = np.clip(columns.pop("device_id"), -1, 2**15 - 1).astype(np.int16)
    columns["address"] = times.addresses([arg.address for arg in args])
    return Batch(Table.INSTANT, 0, _usable(context, columns, "time"))


def _usable(context: Context, columns: Columns, time: str) -> Columns:
    """Return the rows that have a time; the others are counted."""
    missing = columns[time] == times.MISSING
    if not missing.any():
        return columns
    context.tally.add("no-timestamp", int(np.count_nonzero(missing)))
    return {name: column[~missing] for name, column in columns.items()}


def _spans(context: Context, rows: list[Event]) -> list[Batch]:
    start, duration = times_of(context, rows), times.nanoseconds([row.dur for row in rows], context.tally)
    usable = (start != times.MISSING) & (duration != times.MISSING)
    context.spans += zip(start[usable].tolist(), (start + duration)[usable].tolist(), strict=True)
    context.skip("X", len(rows))
    return []


def _labels(context: Context, rows: list[Event]) -> list[Batch]:
    for row in rows:
        label = row.args and (row.args.labels if row.name == "process_labels" else row.args.name)
        if isinstance(row.name, str) and isinstance(label, str):
            tid = None if row.name.startswith("process_") else plain(row.tid)
            context.labels.setdefault((plain(row.pid), tid), {})[row.name] = label
    context.skip("M", len(rows))
    return []
