"""Several ranks in one file: each process that marks steps is a trace of its own.

Merged files hold the processes side by side; their correlation ids and their steps' names are the same. What a device
did belongs to the process whose launches its rows answer: where several answer (ids that collide), devices and
processes are taken in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import lookup
from tracelock.analysis.names import is_step, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.selection import take
from tracelock.trace.columns import HostKind, Int32, Int64, Trace
from tracelock.trace.order import median

Lane: TypeAlias = tuple[int | str, int]  # process and ordinal of a device's rows
ALIKE: Final = 0.95  # of the most answers: as good as these
SOON_NS: Final = 10_000_000  # ranks of one job are no further apart, and ids that collide are


def by_process(trace: Trace) -> list[Trace]:
    """Return `trace` cut into those of its processes that mark steps, in order of their numbers; itself where one does.

    Other processes of the host (workers of a loader) stay with the first. The ranks are numbered in that order.
    """
    owners = _processes(trace)
    if len(owners) < 2:
        return [trace]
    host = _owner_of_tracks(trace, owners)
    device = _owner_of_devices(trace, owners, host)
    return [_part(trace, number, host, device, str(pid)) for number, pid in enumerate(owners)]


def _processes(trace: Trace) -> list[int | str]:
    rows = of_kinds(trace.host, (HostKind.ANNOTATION, HostKind.OPERATOR))
    rows &= matching(trace.texts, trace.host.name, is_step)
    pids = {trace.tracks[track].pid for track in np.unique(trace.host.track[rows]).tolist()}
    return sorted(pids, key=lambda pid: (isinstance(pid, str), pid))


def _owner_of_tracks(trace: Trace, owners: list[int | str]) -> Int32:
    """Return the number of the process of each track, 0 for processes that mark no steps."""
    number = {pid: place for place, pid in enumerate(owners)}
    return np.array([number.get(track.pid, 0) for track in trace.tracks], np.int32)


def _owner_of_devices(trace: Trace, owners: list[int | str], owner: Int32) -> Int32:
    """Return the number of the process that each device row belongs to, shape (device rows,)."""
    lanes = [(trace.tracks[track].pid, int(device)) for track, device in _lanes(trace)]
    different = sorted(set(lanes), key=lambda lane: (str(type(lane[0])), lane))
    place = {lane: number for number, lane in enumerate(different)}
    of_row = _numbers(trace, {key: place[lane] for key, lane in zip(_lanes(trace), lanes, strict=True)})
    found = np.zeros(len(trace.device), np.int32)
    for number in range(len(different)):
        rows = np.flatnonzero(of_row == number)
        scores = [_answers(trace, rows, owner == process) for process in range(len(owners))]
        found[rows] = _best(scores, number * len(owners) // len(different))
    return found


def _best(answers: list[tuple[int, float]], ordered: int) -> int:
    """Return the process that answers most and soonest; the `ordered` one where it does so as well as any."""
    most = max(count for count, _ in answers)
    soonest = min(delay for count, delay in answers if count >= ALIKE * most)
    good = [count >= ALIKE * most and delay <= soonest + SOON_NS for count, delay in answers]
    return ordered if good[ordered] else good.index(True)


def _lanes(trace: Trace) -> list[tuple[int, int]]:
    pairs = np.unique(np.stack([trace.device.track, trace.device.device], axis=1), axis=0)
    return [(int(track), int(device)) for track, device in pairs]


def _numbers(trace: Trace, place: dict[tuple[int, int], int]) -> Int64:
    found = np.full(len(trace.device), -1, np.int64)
    for (track, device), number in place.items():
        found[(trace.device.track == track) & (trace.device.device == device)] = number
    return found


def _answers(trace: Trace, rows: Int64, mine: Mask) -> tuple[int, float]:
    """Return how many device rows start after a launch of their id on the tracks that are `mine`, and how long, ns."""
    host = trace.host
    calls = np.flatnonzero(
        of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER)) & (host.correlation > 0) & mine[host.track]
    )
    ids, first = np.unique(host.correlation[calls], return_index=True)
    launch = lookup(ids, calls[first], trace.device.correlation[rows])
    known = launch >= 0
    delay = trace.device.start[rows[known]] - host.start[launch[known]]
    after = delay[delay >= 0]
    return len(after), median(after) if len(after) else 0.0


def _part(trace: Trace, number: int, owner: Int32, device: Int32, pid: str) -> Trace:
    facts, mine = trace.facts, owner == number
    lanes = owner.copy()
    lanes[trace.device.track] = device
    return replace(
        trace,
        facts=replace(facts, file=f"{facts.file} (process {pid})", rank=number),
        host=take(trace.host, mine[trace.host.track]),
        device=take(trace.device, device == number),
        memory=take(trace.memory, mine[trace.memory.track]),
        flows=take(trace.flows, lanes[trace.flows.track] == number),
    )
