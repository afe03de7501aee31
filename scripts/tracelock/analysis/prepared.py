"""What every analysis of a trace starts from: nesting, links, steps, and what the devices' rows cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracelock.analysis.clocks import on_one_clock
from tracelock.analysis.gpu import DeviceTime, device_times
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import Links, link
from tracelock.analysis.nesting import Tree, nest
from tracelock.analysis.steps import MARKED, Windows, find_windows, launching_step
from tracelock.trace.columns import Trace


@dataclass(frozen=True)
class Prepared:
    """A trace, and what its analyses share."""

    trace: Trace
    tree: Tree
    links: Links
    windows: Windows
    times: tuple[DeviceTime, ...]
    origin: int  # when the first event of the trace starts, ns
    host: Mask  # the host rows that tables sum over
    device: Mask  # the device rows that tables sum over
    restricted: bool  # True where these are the rows of the complete steps alone

    @property
    def extent(self) -> tuple[int, int]:
        """Return the window of all complete steps, ns; (origin, origin) without any."""
        return self.windows.extent() or (self.origin, self.origin)


def prepare(trace: Trace) -> Prepared:
    """Nest the calls of `trace`, link its device rows to them, and find its steps."""
    tree = nest(trace.host)
    links = link(trace, tree)
    trace = on_one_clock(trace, links)
    windows = find_windows(trace, links)
    cut = trace.facts.quality == "partial" and windows.source == MARKED and bool(windows.complete.any())
    host, device = _in_complete_steps(trace, links, windows) if cut else _all_rows(trace)
    return Prepared(trace, tree, links, windows, tuple(device_times(trace)), first_time(trace), host, device, cut)


def first_time(trace: Trace) -> int:
    """Return when the first event of `trace` starts, ns; 0 without events."""
    firsts = [column[0] for column in (trace.host.start, trace.device.start, trace.memory.time) if len(column)]
    return int(min(firsts, default=0))


def _all_rows(trace: Trace) -> tuple[Mask, Mask]:
    return np.ones(len(trace.host), np.bool_), np.ones(len(trace.device), np.bool_)


def _in_complete_steps(trace: Trace, links: Links, windows: Windows) -> tuple[Mask, Mask]:
    """Return the host rows that begin in a complete step, and the device rows launched in one."""
    at = np.searchsorted(windows.host_start, trace.host.start, side="right") - 1
    host = (at >= 0) & (trace.host.start < windows.host_end[at]) & windows.complete[at]
    step = launching_step(trace, links, windows.host_start, windows.host_end)
    return host, (step >= 0) & windows.complete[step]
