"""Why a device was idle: its gaps, divided exactly among what kept it waiting.

A gap ends with a row, and that row was launched by a call on some thread. From the start of that call on, the gap is
launch latency (or waits for another stream). Before it, the gap belongs to what that thread was doing: loading data,
waiting in a synchronising call, waiting in a collective, anything else that the host ran. Where the thread has no row,
the main thread is asked the same. What remains is unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tracelock.analysis.groups import group
from tracelock.analysis.intervals import (
    EMPTY,
    Intervals,
    Mask,
    intersect,
    join,
    length,
    lengths_within,
    subtract,
    union,
)
from tracelock.analysis.intervals import gaps as free_of
from tracelock.analysis.links import Links
from tracelock.analysis.model import HostIdle, IdleCauses
from tracelock.analysis.names import is_collective_call, is_loading, is_step, is_synchronising, matching
from tracelock.analysis.nesting import inner_parts, of_kinds, parents
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

CAUSES = ("dataloader", "host", "synchronization", "launch", "communication", "unattributed")
OUTSIDE = "Python outside of operators"
_ACTIVE = (HostKind.OPERATOR, HostKind.RUNTIME, HostKind.DRIVER, HostKind.ANNOTATION, HostKind.PYTHON, HostKind.OTHER)


@dataclass
class Idle:
    """The idle time of one device by cause, ns; `host` also by the name of what the host ran."""

    causes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    host: dict[str, int] = field(default_factory=dict)

    def to_causes(self) -> IdleCauses:
        """Return the causes in microseconds."""
        return IdleCauses(**{cause: time / 1000 for cause, time in self.causes.items()})

    def to_host(self, top: int) -> tuple[HostIdle, ...]:
        """Return the `top` largest of the host's parts by name, in microseconds."""
        ordered = sorted(self.host.items(), key=lambda item: (-item[1], item[0]))
        return tuple(HostIdle(name, time / 1000) for name, time in ordered[:top] if time)


class HostTime:
    """What each thread was doing when, computed once a thread."""

    def __init__(self, trace: Trace, main: int) -> None:
        """Take the rows of `trace`; `main` is the track of the training loop, -1 where unknown."""
        self.trace, self.main = trace, main
        self._active = of_kinds(trace.host, _ACTIVE)
        self._by_track: dict[int, tuple[Int64, dict[str, Intervals]]] = {}

    def of(self, track: int) -> tuple[Int64, dict[str, Intervals]]:
        """Return the rows of a thread, and its time by cause in order of precedence."""
        if track not in self._by_track:
            rows = np.flatnonzero(self._active & (self.trace.host.track == track))
            self._by_track[track] = rows, self._roles(rows)
        return self._by_track[track]

    def _roles(self, rows: Int64) -> dict[str, Intervals]:
        host, texts = self.trace.host, self.trace.texts
        named = of_kinds(host, (HostKind.PYTHON,))[rows]
        names = np.where(named, np.int32(-1), host.name[rows])  # a frame may be called anything
        asked = {"dataloader": is_loading, "synchronization": is_synchronising, "communication": is_collective_call}
        roles = {cause: self._covered(rows[matching(texts, names, ask)]) for cause, ask in asked.items()}
        return {**roles, "host": self._covered(rows)}

    def _covered(self, rows: Int64) -> Intervals:
        start = self.trace.host.start[rows]
        return union(start, start + self.trace.host.duration[rows])


def idle_causes(trace: Trace, links: Links, chosen: Mask, busy: Intervals, host_time: HostTime) -> Idle:
    """Return why the device was idle between the first and the last of its `busy` time.

    Parameters
    ----------
    chosen
        The rows of the device that are work.
    busy
        What they cover, within the window that is looked at.

    """
    idle = Idle()
    gaps = free_of(busy, int(busy.start[0]), int(busy.end[-1])) if len(busy) else EMPTY
    launch = _next_launch(trace, links, chosen, gaps)
    made = _made(trace, launch, gaps)
    idle.causes["launch"] = int((gaps.end - made)[launch >= 0].sum())
    left = []
    for track in np.unique(trace.host.track[launch[launch >= 0]]).tolist():
        mine = (launch >= 0) & (trace.host.track[launch] == track)
        waited = _filled(gaps.start[mine], made[mine])
        left.append(_divide(idle, waited, track, host_time))
    rest = join(*left)
    if host_time.main >= 0:
        rest = _divide(idle, rest, host_time.main, host_time)
    unlinked = int((gaps.end - gaps.start)[launch < 0].sum())
    idle.causes["unattributed"] = length(rest) + unlinked
    return idle


def _next_launch(trace: Trace, links: Links, chosen: Mask, gaps: Intervals) -> Int32:
    """Return the call that launched the row at the end of each gap, -1 where it is unknown."""
    rows = np.flatnonzero(chosen & (trace.device.duration > 0))
    if not len(gaps):
        return np.empty(0, np.int32)
    return links.launch[rows[np.searchsorted(trace.device.start[rows], gaps.end)]]


def _made(trace: Trace, launch: Int32, gaps: Intervals) -> Int64:
    """Return when the call was made that ended each gap: at its start at the earliest, at its end at the latest."""
    if not len(trace.host):
        return gaps.end
    return np.where(launch >= 0, np.clip(trace.host.start[launch], gaps.start, gaps.end), gaps.end)


def _filled(start: Int64, end: Int64) -> Intervals:
    kept = end > start
    return Intervals(start[kept], end[kept])


def _divide(idle: Idle, waited: Intervals, track: int, host_time: HostTime) -> Intervals:
    """Add to `idle` what the thread was doing in the time `waited`; return the time in which it has no row."""
    rows, roles = host_time.of(track)
    for cause, role in roles.items():
        held = intersect(waited, role)
        idle.causes[cause] += length(held)
        if cause == "host":
            _name(idle, host_time.trace, rows, held)
        waited = subtract(waited, role)
    return waited


def _name(idle: Idle, trace: Trace, rows: Int64, held: Intervals) -> None:
    """Add the time `held` of a thread to the names of its innermost rows."""
    start = trace.host.start[rows]
    within = lengths_within(held, start, start + trace.host.duration[rows])
    rows, start, within = rows[within > 0], start[within > 0], within[within > 0]
    if not len(rows):
        return
    end = start + trace.host.duration[rows]
    low, high, above = inner_parts(start, end, parents(start, end))
    inner = np.bincount(above, weights=lengths_within(held, low, high), minlength=len(rows))
    own = within - inner.astype(np.int64)
    groups = group(trace.host.name[rows])
    for name, time in zip(groups.keys[0].tolist(), groups.total(own).tolist(), strict=True):
        text = trace.texts[name] if name >= 0 else ""
        text = OUTSIDE if is_step(text) else text
        idle.host[text] = idle.host.get(text, 0) + time
