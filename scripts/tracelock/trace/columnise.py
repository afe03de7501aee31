"""Decoded events become columns: a list of events in, batches of arrays out, one batch a kind of row.

Only what a kind of row can have is looked at: an operator has no stream, a kernel has no shapes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tracelock.trace import times
from tracelock.trace.columns import DeviceKind, FlowKind, HostKind, Int32
from tracelock.trace.context import Context
from tracelock.trace.descriptions import descriptions
from tracelock.trace.dictionary import plain
from tracelock.trace.events import NO_ARGS, Event
from tracelock.trace.extract import (
    Columns,
    Getter,
    durations,
    floats,
    getters,
    integers,
    join_external,
    lanes,
    names,
    starts,
    text_ids,
)
from tracelock.trace.kinds import Meaning, Table, meaning
from tracelock.trace.origin import AUTOGRAD_DEVICE, AUTOGRAD_HOST


class Batch(NamedTuple):
    """Some rows of one kind: the columns they have, shape (n,) each; columns left out are absent in every row."""

    table: Table
    kind: int
    columns: Columns


_id = attrgetter("id")
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
_AUTOGRAD: Final[dict[Any, Meaning]] = {
    AUTOGRAD_HOST: Meaning(Table.HOST, HostKind.OPERATOR),
    AUTOGRAD_DEVICE: Meaning(Table.DEVICE, DeviceKind.KERNEL),
}
_INSTANT: Final = Meaning(Table.INSTANT, 0)
_FOREIGN_FLOW: Final = Meaning(Table.FLOW, FlowKind.OTHER)
_FLOW_PHASES: Final = frozenset("stf")
_NO_STREAM: Final = (0xFFFFFFFF, 0x7FFFFFFF)  # CUPTI's word for "no stream", printed as a number
_MOST_DEVICES: Final = 1024
_FAR_US: Final = 10**18


class _Group(NamedTuple):
    """Events of one kind, their times and lanes (and durations and names, if they are complete events)."""

    what: Meaning
    rows: list[Event]
    columns: Columns


def batches(context: Context, events: Sequence[Event], text: bytes | memoryview) -> list[Batch]:
    """Return the rows of `events` by kind; `text` is the JSON array that they were decoded from.

    Raises
    ------
    NeedDigitsError
        If floats have lost digits of the times; none of these events is kept or counted then.
    """
    mark = context.mark()
    try:
        made = _made(context, events)
        if context.passed_halves(mark[1]):  # nothing is looked at for their sake in files that have none
            context.rewind(mark)
            made = _made(context, context.pairs.close(events, context.tally, context.skip))
    except times.NeedDigitsError:
        context.rewind(mark)
        raise
    _describe_collectives(context, made, events, text)
    context.events += len(events)
    return made


def _made(context: Context, events: Sequence[Event]) -> list[Batch]:
    return [_MAKERS[group.what.table](context, group) for group in _groups(context, events)]


def _groups(context: Context, events: Sequence[Event]) -> list[_Group]:
    """Return the events that make rows, by kind, with the columns that are made for all of them at once."""
    sorted_out = _by_kind(context, events)
    rows = [row for _, some in sorted_out for row in some]
    complete = sum(len(some) for what, some in sorted_out if what.table <= Table.DEVICE)
    if not rows:
        return []
    start, lane = starts(context, rows), lanes(context, rows)
    duration, name = durations(context, rows[:complete]), names(context, rows[:complete])
    made, place = [], 0
    for what, some in sorted_out:
        here = slice(place, place + len(some))
        place += len(some)
        columns: Columns = {"start" if what.table <= Table.DEVICE else "time": start[here], "track": lane[here]}
        if what.table <= Table.DEVICE:
            columns |= {"duration": duration[here], "name": name[here]}
        made.append(_usable(context, _Group(what, some, columns)))
    return made


def _by_kind(context: Context, events: Sequence[Event]) -> list[tuple[Meaning, list[Event]]]:
    """Return the events that make rows by what they are, complete events first; deal with all others."""
    buckets: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        buckets[event.cat].append(event)
    found: list[tuple[Meaning, list[Event]]] = []
    for category, rows in buckets.items():
        what = meaning(category)
        if _tells_all(what) or (what.table == Table.FLOW and {row.ph for row in rows} <= _FLOW_PHASES):
            found.append((what, rows))
        else:
            for phase in sorted({row.ph for row in rows}):
                found += _by_phase(context, what, phase, [row for row in rows if row.ph == phase])
    return sorted(found, key=lambda group: group[0])


def _tells_all(what: Meaning) -> bool:
    """Return whether events of a category are complete events whatever their phases say (checked by durations)."""
    return what.table == Table.DEVICE or (what.table == Table.HOST and what.kind != HostKind.OTHER)


def _by_phase(context: Context, what: Meaning, phase: str, rows: list[Event]) -> list[tuple[Meaning, list[Event]]]:
    """Return events of one phase that make rows, where their category does not tell what they are."""
    if phase in _FLOW_PHASES:
        return [(what if what.table == Table.FLOW else _FOREIGN_FLOW, rows)]
    if phase == "X" and what.table == Table.UNNAMED:
        return _uncategorised(rows)
    if phase == "X" and what.table != Table.SPAN:
        return [(_FOREIGN, rows)]
    if phase in "iI":
        return _instants(context, rows)
    if phase == "X":
        _spans(context, rows)
    elif phase == "M":
        _labels(context, rows)
    context.skip(phase, len(rows))
    return []


def _uncategorised(rows: list[Event]) -> list[tuple[Meaning, list[Event]]]:
    """Return complete events without a category: told by their process, the autograd profiler's before Kineto."""
    found: dict[Meaning, list[Event]] = {}
    for row in rows:
        found.setdefault(_AUTOGRAD.get(row.pid, _FOREIGN), []).append(row)
    return list(found.items())


def _usable(context: Context, group: _Group) -> _Group:
    """Return the rows that have a time, and a duration if they need one; count the others."""
    time = group.columns["start" if group.what.table <= Table.DEVICE else "time"]
    missing: npt.NDArray[np.bool_] = time == times.MISSING
    if "duration" in group.columns:
        missing |= group.columns["duration"] == times.MISSING
    if not missing.any():
        return group
    for place in np.flatnonzero(missing).tolist():
        phase = group.rows[place].ph
        if group.what.table <= Table.DEVICE and phase != "X":
            context.skip(phase)
        else:
            context.tally.add("no-timestamp" if time[place] == times.MISSING else "no-duration")
    rows = [row for row, lost in zip(group.rows, missing.tolist(), strict=True) if not lost]
    return _Group(group.what, rows, {name: column[~missing] for name, column in group.columns.items()})


def _host(context: Context, group: _Group) -> Batch:
    kind, columns = group.what.kind, group.columns
    args = [row.args or NO_ARGS for row in group.rows]
    columns |= {name: integers(context, args, get) for name, get in _HOST[kind].items()}
    if "old_external" in columns:
        join_external(columns)
    if kind in _WITH_TEXTS:
        columns |= text_ids(context, args)
    return Batch(Table.HOST, kind, columns)


def _device(context: Context, group: _Group) -> Batch:
    columns = group.columns
    args = [row.args or NO_ARGS for row in group.rows]
    columns |= {name: integers(context, args, get) for name, get in _DEVICE.items()}
    columns |= {name: floats(args, get) for name, get in _DEVICE_FLOATS.items()}
    join_external(columns)
    for number in _NO_STREAM:
        columns["stream"][columns["stream"] == number] = -1
    columns["device"] = _ordinals(context, columns)
    described = [arg.collective is not None for arg in args]
    if any(described):
        # The rows themselves for now: what they say of a collective is looked up in the text of the unit.
        pairs = zip(group.rows, described, strict=True)
        columns["collective"] = np.array([row if some else None for row, some in pairs], dtype=object)
    return Batch(Table.DEVICE, group.what.kind, columns)


def _ordinals(context: Context, columns: Columns) -> Int32:
    """Return the device of each row; where args name none, its process is the ordinal (annotations on devices)."""
    device = columns["device"]
    if (device < 0).any():
        lanes = [tid if pid == AUTOGRAD_DEVICE else pid for pid, tid in context.tracks.lanes]
        pids = [pid if isinstance(pid, int) and 0 <= pid < _MOST_DEVICES else -1 for pid in lanes]
        device = np.where(device < 0, np.array(pids, dtype=np.int64)[columns["track"]], device)
    return np.clip(device, -1, 2**31 - 1).astype(np.int32)


def _describe_collectives(
    context: Context, made: list[Batch], events: Sequence[Event], text: bytes | memoryview
) -> None:
    """Replace rows in the column of collectives by ids of what they say of a collective."""
    waiting = [batch.columns for batch in made if "collective" in batch.columns]
    if not waiting:
        return
    described = descriptions(events, text)
    for columns in waiting:
        found = [described.get(id(row)) for row in columns["collective"]]
        ids = [-1 if each is None else context.collectives.number(each) for each in found]
        columns["collective"] = np.array(ids, dtype=np.int32)


def _flows(context: Context, group: _Group) -> Batch:
    columns = group.columns
    columns["identifier"] = integers(context, group.rows, _id)
    columns["begins"] = np.array([row.ph == "s" for row in group.rows], dtype=np.bool_)
    return Batch(Table.FLOW, group.what.kind, columns)


def _memory(context: Context, group: _Group) -> Batch:
    columns = group.columns
    args = [row.args or NO_ARGS for row in group.rows]
    columns |= {name: integers(context, args, get) for name, get in _MEMORY.items()}
    columns["bytes"] = columns.pop("allocation")
    columns["device_type"] = np.clip(columns["device_type"], -1, 127).astype(np.int8)
    columns["device"] = np.clip(columns.pop("device_id"), -1, 2**15 - 1).astype(np.int16)
    columns["address"] = times.addresses([arg.address for arg in args])
    return Batch(Table.INSTANT, 0, columns)


_MAKERS: Final = {Table.HOST: _host, Table.DEVICE: _device, Table.FLOW: _flows, Table.INSTANT: _memory}


def _instants(context: Context, rows: list[Event]) -> list[tuple[Meaning, list[Event]]]:
    """Return the memory records among instants; the others are marks that no table holds."""
    memory = [row for row in rows if row.name == "[memory]"]
    for row in rows:
        if row.name != "[memory]":
            context.skip(row.ph)
            context.tally.add("out-of-memory", row.name == "[OutOfMemory]")
            context.tally.add("far-away-window", _is_far_window(row))
    return [(_INSTANT, memory)] if memory else []


def _is_far_window(row: Event) -> bool:
    return isinstance(row.ts, int | float) and row.ts > _FAR_US and row.name == "Record Window End"


def _spans(context: Context, rows: list[Event]) -> None:
    start, duration = starts(context, rows), durations(context, rows)
    usable = (start != times.MISSING) & (duration != times.MISSING)
    context.spans += zip(start[usable].tolist(), (start + duration)[usable].tolist(), strict=True)


def _labels(context: Context, rows: list[Event]) -> None:
    for row in rows:
        label = row.args and (row.args.labels if row.name == "process_labels" else row.args.name)
        if isinstance(row.name, str) and isinstance(label, str):
            tid = None if row.name.startswith("process_") else plain(row.tid)
            context.labels.setdefault((plain(row.pid), tid), {})[row.name] = label
