"""The work of ``tracelock slim``: which rows belong to a few steps, and a copy of their events."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from tracelock.analysis.processes import by_process
from tracelock.cli._progress import reading
from tracelock.errors import Problem, TracelockError, nearest
from tracelock.io import atomic_path
from tracelock.trace import Trace, read_trace
from tracelock.trace.columns import DeviceKind, FlowKind, HostKind, Int64
from tracelock.trace.copy import copy_events
from tracelock.trace.dictionary import plain
from tracelock.trace.events import Event, Scalar
from tracelock.trace.kinds import Table, meaning
from tracelock.trace.tally import Tally
from tracelock.trace.times import integers

_STEP: Final = re.compile(r"ProfilerStep#(\d+)")


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    source: Path
    target: Path
    steps: int
    first: int | None
    least_us: float


@dataclass(frozen=True)
class Steps:
    """Steps of a trace in order of time, shape (n,) each."""

    number: Int64
    start: Int64  # ns
    end: Int64  # ns


@dataclass(frozen=True)
class Choice:
    """Which events to copy. Times in ns."""

    start: int
    end: int
    least: int  # duration
    device: frozenset[int]  # correlation ids of kept device rows
    loose: frozenset[tuple[int, int]]  # start and correlation id of kept device rows whose launch is not in the file
    arrows: dict[int, frozenset[int]] = field(default_factory=dict)  # ids of kept arrows by FlowKind

    def __call__(self, events: Sequence[Event], time: Int64, duration: Int64) -> list[bool]:
        """Return which of `events` belong to the choice."""
        return list(map(self.wants, events, time.tolist(), duration.tolist()))

    def wants(self, event: Event, time: int, duration: int) -> bool:
        """Return whether an event belongs to the choice."""
        table, kind = meaning(event.cat)
        if event.ph == "M":
            return True
        if event.ph in "stf":
            flow = kind if table == Table.FLOW else FlowKind.OTHER
            return _number(event.id) in self.arrows.get(flow, ())
        within = self.start <= time < self.end
        if event.ph != "X":
            return within and event.name != "Record Window End"
        correlation = _number(event.args.correlation) if event.args else -1
        if table == Table.DEVICE:
            mark = kind == DeviceKind.ANNOTATION
            mine = within if mark else correlation in self.device or (time, correlation) in self.loose
            return mine and (mark or duration >= self.least)
        long_enough = duration >= self.least or kind == HostKind.ANNOTATION or correlation in self.device
        return table == Table.HOST and within and long_enough


class Ranks:
    """Which events to copy of a file of several ranks (or of one): the same steps of each, by its own clock and ids."""

    def __init__(self, parts: Sequence[Trace], steps: Steps, least: int) -> None:
        mine = [steps, *(_alike(part, steps) for part in parts[1:])]
        self._choices = [_choice(part, each, least) for part, each in zip(parts, mine, strict=True)]
        self._of_lane = {lane: place for place, part in enumerate(parts) for lane in _lanes(part)}

    def __call__(self, events: Sequence[Event], time: Int64, duration: Int64) -> list[bool]:
        """Return which of `events` belong to the choice."""
        if len(self._choices) == 1:
            return self._choices[0](events, time, duration)
        mine = [self._choices[self._of_lane.get((plain(event.pid), plain(event.tid)), 0)] for event in events]
        rows = zip(mine, events, time.tolist(), duration.tolist(), strict=True)
        return [choice.wants(event, at, lasts) for choice, event, at, lasts in rows]


def _alike(part: Trace, wanted: Steps) -> Steps:
    """Return the steps of `part` with the numbers of `wanted`, which another rank has."""
    steps = steps_of(part)
    first = int(np.argmax(steps.number == wanted.number[0])) if wanted.number[0] in steps.number else len(steps.number)
    chosen = slice(first, first + len(wanted.number))
    return Steps(steps.number[chosen], steps.start[chosen], steps.end[chosen])


def _choice(part: Trace, steps: Steps, least: int) -> Choice:
    if not len(steps.start):
        return Choice(0, 0, least, frozenset(), frozenset())
    return choose(part, int(steps.start[0]), int(steps.end[-1]), least)


def _lanes(part: Trace) -> set[tuple[int | str, int | str]]:
    tables = (part.host, part.device, part.memory, part.flows)
    return {(part.tracks[track].pid, part.tracks[track].tid) for rows in tables for track in np.unique(rows.track)}


def _number(value: Scalar) -> int:
    return value if type(value) is int else int(integers([value], Tally())[0])


def run(request: Request) -> None:
    """Write the small trace and say what is in it."""
    if request.target.exists() and request.target.samefile(request.source):
        raise TracelockError(Problem(str(request.target), "is the trace itself, expected another file to write to"))
    with reading(request.source.name) as progress:
        trace = read_trace(request.source, progress)
    parts = by_process(trace)
    steps = choose_steps(parts[0], request)
    choice = Ranks(parts, steps, round(request.least_us * 1000))
    events = trace.facts.events
    del trace, parts
    with atomic_path(request.target) as part, reading(request.source.name) as progress:
        size = request.source.stat().st_size
        packed = request.target.suffix == ".gz"
        with gzip.open(part, "wb", compresslevel=6) if packed else part.open("wb") as stream:
            copied = copy_events(request.source, stream.write, choice, lambda done: progress(done, size))
    names = ", ".join(f"ProfilerStep#{number}" for number in steps.number.tolist())
    megabytes = request.target.stat().st_size / 1e6
    print(f"{request.target}: {copied.kept:,} of {events:,} events, {megabytes:,.1f} MB: {names}", file=sys.stderr)


def steps_of(trace: Trace) -> Steps:
    """Return the steps that the host marks, in order of time; of a repeated number each time that it occurs."""
    host = trace.host
    numbers = {place: int(match.group(1)) for place, text in enumerate(trace.texts) if (match := _STEP.fullmatch(text))}
    # Until 2021 the profiler wrote them as operators.
    marks = np.isin(host.kind, (HostKind.ANNOTATION, HostKind.OPERATOR))
    (rows,) = np.nonzero(marks & np.isin(host.name, list(numbers)))
    number = np.array([numbers[name] for name in host.name[rows].tolist()], dtype=np.int64)
    return Steps(number, host.start[rows], host.start[rows] + host.duration[rows])


def choose_steps(trace: Trace, request: Request) -> Steps:
    """Return the steps to keep: from the one asked for, or those nearest to the median length.

    Raises
    ------
    TracelockError
        If the trace has no steps, or not the one asked for.
    """
    steps, where = steps_of(trace), str(request.source)
    if not len(steps.start):
        hint = "call profiler.step() in the training loop"
        raise TracelockError(Problem(where, "has no steps (rows named ProfilerStep#N)", hint))
    if request.first is None:
        first = _most_typical(steps.end - steps.start, request.steps)
    else:
        numbers = steps.number.tolist()
        if request.first not in numbers:
            hint = nearest(str(request.first), [str(number) for number in numbers])
            there = f"it has {min(numbers)} to {max(numbers)}"
            raise TracelockError(Problem(where, f"has no ProfilerStep#{request.first}: {there}", hint))
        first = numbers.index(request.first)
    chosen = slice(first, first + request.steps)
    return Steps(steps.number[chosen], steps.start[chosen], steps.end[chosen])


def _most_typical(length: Int64, count: int) -> int:
    """Return the first of `count` neighbouring steps whose lengths differ least from the median of all."""
    count = min(count, len(length))
    away = np.abs(length - np.median(length))
    return int(np.argmin(np.convolve(away, np.ones(count), mode="valid")))


def choose(trace: Trace, start: int, end: int, least: int) -> Choice:
    """Return which events belong to the steps from `start` to `end` (ns) and last `least` ns or longer."""
    host, device = trace.host, trace.device
    calls = (host.correlation > 0) & ((host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER))
    within = (host.start >= start) & (host.start < end)
    launched = np.isin(device.correlation, host.correlation[calls & within])
    work = (device.kind != DeviceKind.ANNOTATION) & (device.duration >= least)
    unlinked = ~np.isin(device.correlation, host.correlation[calls])
    loose = work & unlinked & (device.start >= start) & (device.start < end)
    kept = frozenset(device.correlation[work & launched].tolist())
    pairs = zip(device.start[loose].tolist(), device.correlation[loose].tolist(), strict=True)
    on_host = within & (
        (host.duration >= least) | (host.kind == HostKind.ANNOTATION) | np.isin(host.correlation, list(kept))
    )
    arrows = _arrows(trace, on_host, kept & frozenset(host.correlation[calls & within].tolist()), (start, end))
    return Choice(start, end, least, kept, frozenset(pairs), arrows)


def _arrows(
    trace: Trace, on_host: np.ndarray, launches: frozenset[int], window: tuple[int, int]
) -> dict[int, frozenset[int]]:
    """Return the ids of arrows by kind, of which both ends are at kept rows."""
    flows, host = trace.flows, trace.host
    inside = (flows.time >= window[0]) & (flows.time < window[1])
    rows = set(zip(host.track[on_host].tolist(), host.start[on_host].tolist(), strict=True))
    made: dict[int, frozenset[int]] = {}
    for kind in FlowKind:
        mine = flows.kind == kind
        if kind == FlowKind.LAUNCH:
            mine &= np.isin(flows.identifier, list(launches))
        elif kind == FlowKind.FORWARD_BACKWARD:
            mine &= inside
            places = zip(flows.track[mine].tolist(), flows.time[mine].tolist(), strict=True)
            mine[np.flatnonzero(mine)] = [place in rows for place in places]
        else:
            mine &= inside
        begun, ended = flows.identifier[mine & flows.begins], flows.identifier[mine & ~flows.begins]
        made[kind] = frozenset(np.intersect1d(begun, ended).tolist())
    return made
