"""The lanes of a timeline: rows that belong on one band, each with the level it is drawn at.

A host thread has two: what was called (labels, operators, runtime calls, nested) and the Python frames around it. A
device has one a stream, one for the labels that it was given, and one for why it was idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tracelock.analysis.flames import depths
from tracelock.analysis.idle import CAUSES, HostTime, idle_causes
from tracelock.analysis.intervals import length
from tracelock.analysis.links import is_busy
from tracelock.analysis.nesting import CALLS, Tree, nest, parents, thread_order
from tracelock.analysis.prepared import Prepared
from tracelock.trace.columns import DeviceKind, HostKind, Int32, Int64, Track

_CALLED = (*CALLS, HostKind.OVERHEAD, HostKind.OTHER)
# What a row is, for its colour. Host kinds keep their numbers; the device's follow.
DEVICE = 10
IDLE = 20


@dataclass(frozen=True)
class Lane:
    """Rows of one band in order of level and start; shape (n,) each, times in ns since the origin of the trace."""

    name: str
    kind: str  # "calls", "python", "stream", "labels", "idle"
    group: str  # the heading it stands under: "Host 4242", "GPU 0"
    start: Int64
    duration: Int64
    level: Int32
    text: Int64  # id in Trace.texts; of idle time the place of its cause in CAUSES
    color: Int64  # HostKind, DEVICE + DeviceKind, IDLE + place of the cause
    row: Int64  # the host or device row; -1 for idle time

    def __len__(self) -> int:
        return len(self.start)

    def take(self, at: npt.NDArray[np.intp]) -> Lane:
        """Return the rows at some positions."""
        columns = {name: getattr(self, name)[at] for name in ("start", "duration", "level", "text", "color", "row")}
        return replace(self, **columns)


def lanes(known: Prepared) -> list[Lane]:
    """Return the lanes of a trace: those of devices first, then those of host threads, the busiest thread first."""
    return [*_device_lanes(known), *_host_lanes(known)]


def _host_lanes(known: Prepared) -> Iterator[Lane]:
    host = known.trace.host
    called, frames = nest(host, _CALLED), nest(host, (HostKind.PYTHON,))
    counts = np.bincount(host.track, minlength=len(known.trace.tracks)) if len(host) else np.empty(0, np.int64)
    main = known.windows.track
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda track: (track != main, -int(counts[track])))
    for track in order:
        lane = known.trace.tracks[track]
        title = _thread_name(lane)
        title += " (training loop)" if track == main and known.windows.source != "whole trace" else ""
        group = f"Host process {lane.pid}"
        for kind, tree in (("calls", called), ("python", frames)):
            rows = np.flatnonzero((host.track == track) & np.isin(host.kind, [int(each) for each in tree.kinds]))
            if len(rows):
                yield _host_lane(known, tree, rows, (title, kind, group))


def _thread_name(lane: Track) -> str:
    name = lane.thread_name or ""
    return name if str(lane.tid) in name else f"thread {lane.tid}" + (f", {name}" if name else "")


def _host_lane(known: Prepared, tree: Tree, rows: Int64, head: tuple[str, str, str]) -> Lane:
    host = known.trace.host
    level = _levels(tree.parent, rows)
    start = host.start[rows] - known.origin
    names, kinds = host.name[rows].astype(np.int64), host.kind[rows].astype(np.int64)
    return _ordered(Lane(*head, start, host.duration[rows], level, names, kinds, rows))


def _levels(parent: Int32, rows: Int64) -> Int32:
    outer = np.searchsorted(rows, parent[rows]).astype(np.int32)
    outer[parent[rows] < 0] = -1
    return depths(outer)


def _device_lanes(known: Prepared) -> Iterator[Lane]:
    device, tracks = known.trace.device, known.trace.tracks
    for ordinal in np.unique(device.device).tolist():
        mine = device.device == ordinal
        yield from _idle_lane(known, ordinal)
        for kinds, kind in (((DeviceKind.ANNOTATION,), "labels"), (_WORK, "stream")):
            chosen = mine & np.isin(device.kind, [int(each) for each in kinds])
            bands = np.where(device.stream >= 0, device.stream, -1 - device.track.astype(np.int64))
            for band in np.unique(bands[chosen]).tolist():
                rows = np.flatnonzero(chosen & (bands == band))
                name = f"stream {band}" if band >= 0 else _track_name(tracks[-1 - band])
                yield _device_lane(known, rows, (name if kind == "stream" else f"labels, {name}", kind, _gpu(ordinal)))


_WORK = (DeviceKind.KERNEL, DeviceKind.MEMCPY, DeviceKind.MEMSET, DeviceKind.SYNC)


def _gpu(ordinal: int) -> str:
    return f"GPU {ordinal}" if ordinal >= 0 else "GPU"


def _track_name(track: Track) -> str:
    return track.thread_name or f"lane {track.tid}"


def _device_lane(known: Prepared, rows: Int64, head: tuple[str, str, str]) -> Lane:
    device = known.trace.device
    start, duration = device.start[rows], device.duration[rows]
    level = depths(parents(start, start + duration, np.zeros(1, np.intp)))
    names, kinds = device.name[rows].astype(np.int64), device.kind[rows].astype(np.int64) + DEVICE
    return _ordered(Lane(*head, start - known.origin, duration, level, names, kinds, rows))


def _idle_lane(known: Prepared, ordinal: int) -> Iterator[Lane]:
    """Yield why a device was idle between its first and last work of the complete steps, as the analysis has it."""
    times = [time for time in known.times if time.device == ordinal]
    inside = times[0].within(*known.extent) if times else None
    if inside is None or not len(inside.busy):
        return
    rows = known.trace.device
    mine = is_busy(rows) & (rows.device == ordinal)
    idle = idle_causes(known.trace, known.links, mine, inside.busy, HostTime(known.trace, known.windows.track))
    parts = [(place, idle.when(cause)) for place, cause in enumerate(CAUSES)]
    parts = [(place, part) for place, part in parts if length(part)]
    if parts:
        start = np.concatenate([part.start for _, part in parts])
        end = np.concatenate([part.end for _, part in parts])
        cause = np.concatenate([np.full(len(part), place, np.int64) for place, part in parts])
        level, none = np.zeros(len(start), np.int32), np.full(len(start), -1, np.int64)
        head = ("idle: what it waits for", "idle", _gpu(ordinal))
        yield _ordered(Lane(*head, start - known.origin, end - start, level, cause, cause + IDLE, none))


def _ordered(lane: Lane) -> Lane:
    order = np.argsort(lane.start, kind="stable")
    return lane.take(order[thread_order(lane.level[order])])
