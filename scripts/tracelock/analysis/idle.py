"""Why a device was idle: its gaps, divided exactly among what kept it waiting.

A gap ends with a row, and that row was launched by a call on some thread. From the start of that call on, the gap is
launch latency (or waits for another stream). Before it, the gap belongs to what that thread was doing: loading data,
waiting in a synchronising call, waiting in a collective, anything else that the host ran. Where the thread has no row,
the main thread is asked the same. What remains is unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tracelock.analysis.intervals import (
    EMPTY,
    Intervals,
    Mask,
    clip,
    cover,
    intersect,
    join,
    length,
    lengths_within,
    subtract,
)
from tracelock.analysis.intervals import gaps as free_of
from tracelock.analysis.links import Links
from tracelock.analysis.model import HostIdle, IdleCauses
from tracelock.analysis.names import is_collective_call, is_loading, is_step, is_synchronising, matching
from tracelock.analysis.nesting import inner_parts, of_kinds, sweep
from tracelock.analysis.parts import IDLE
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

CAUSES = tuple(part.key for part in IDLE)
OUTSIDE = "Python outside of operators"
_ACTIVE = (HostKind.OPERATOR, HostKind.RUNTIME, HostKind.DRIVER, HostKind.ANNOTATION, HostKind.PYTHON, HostKind.OTHER)


@dataclass
class Idle:
    """The idle time of one device by cause, ns; `host` also by the name of what the host ran."""

    causes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    host: dict[str, int] = field(default_factory=dict)
    held: dict[str, list[Intervals]] = field(default_factory=lambda: {cause: [] for cause in CAUSES})

    def add(self, cause: str, when: Intervals) -> None:
        """Charge the time `when`, which nothing has been charged with, to a cause."""
        self.causes[cause] += length(when)
        self.held[cause].append(when)

    def when(self, cause: str) -> Intervals:
        """Return the time that was charged to a cause: as long as its part of `causes`."""
        return join(*self.held[cause])

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
        self._by_track: dict[int, dict[str, Intervals]] = {}

    def of(self, track: int) -> dict[str, Intervals]:
        """Return the time of a thread by cause, in order of precedence."""
        if track not in self._by_track:
            self._by_track[track] = self._roles(self.rows(track))
        return self._by_track[track]

    def rows(self, track: int) -> Mask:
        """Return which host rows tell what a thread was doing."""
        mine: Mask = self._active & (self.trace.host.track == track)
        return mine

    def _roles(self, rows: Mask) -> dict[str, Intervals]:
        host, texts = self.trace.host, self.trace.texts
        named = rows & ~of_kinds(host, (HostKind.PYTHON,))  # a frame may be called anything
        asked = {"dataloader": is_loading, "synchronization": is_synchronising, "communication": is_collective_call}
        roles = {
            cause: cover(host.start, host.duration, named & matching(texts, host.name, ask))
            for cause, ask in asked.items()
        }
        return {**roles, "host": cover(host.start, host.duration, rows)}


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
    idle.add("launch", _filled(made[launch >= 0], gaps.end[launch >= 0]))
    left = []
    for track in np.unique(trace.host.track[launch[launch >= 0]]).tolist():
        mine = (launch >= 0) & (trace.host.track[launch] == track)
        waited = _filled(gaps.start[mine], made[mine])
        left.append(_divide(idle, waited, track, host_time))
    rest = join(*left)
    if host_time.main >= 0:
        rest = _divide(idle, rest, host_time.main, host_time)
    idle.add("unattributed", rest)
    idle.add("unattributed", _filled(gaps.start[launch < 0], gaps.end[launch < 0]))
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
    for cause, role in host_time.of(track).items():
        held = intersect(waited, role)
        idle.add(cause, held)
        if cause == "host" and len(held):
            _name(idle, host_time.trace, host_time.rows(track), held)
        waited = subtract(waited, role)
    return waited


def _name(idle: Idle, trace: Trace, chosen: Mask, held: Intervals) -> None:
    """Add the time `held` of a thread to the names of the innermost of the `chosen` rows."""
    own = np.zeros(len(trace.texts) + 1)
    for block in sweep(trace.host, chosen):
        now = clip(held, *block.window)
        names = trace.host.name[block.rows] + 1
        low, high, above = inner_parts(block)
        own += np.bincount(names, lengths_within(now, block.start, block.end), minlength=len(own))
        own -= np.bincount(names[above], lengths_within(now, low, high), minlength=len(own))
    for name in np.flatnonzero(own).tolist():
        text = trace.texts[name - 1] if name else ""
        text = OUTSIDE if is_step(text) else text
        idle.host[text] = idle.host.get(text, 0) + int(own[name])
