"""Whether host and device wrote their times on one clock, and how far apart the clocks are where they did not.

No kernel starts before the call that launches it begins. Where most do, by far more than clocks drift, the device's
clock is behind by at least the largest such lead. And no call that waits for the whole device ends before the work
that was launched before it: where one does, and each row starts long after its launch, the device's clock is ahead.
(Long delays alone say nothing: a device may be a thousand launches behind.)
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from tracelock.analysis.links import Links, is_busy
from tracelock.analysis.names import matching
from tracelock.trace.columns import Int64, Trace, TraceWarning
from tracelock.trace.order import median

APART: Final = "clocks-apart"  # corrected by the links
UNKNOWN: Final = "clocks-unrelated"  # nothing tells by how much
DRIFT_NS: Final = 1_000_000  # clocks that are one differ by microseconds, at worst by hundreds of them
WAIT_NS: Final = 10_000_000  # between a launch and its work, in every case
FEWEST: Final = 3  # links
_WAITS_FOR_ALL: Final = re.compile(r"(cuda|hip)DeviceSynchronize$|cuCtxSynchronize$")


def on_one_clock(trace: Trace, links: Links) -> Trace:
    """Return `trace` with its device rows on the host's clock, and a warning where they were not."""
    rows = np.flatnonzero(is_busy(trace.device) & (links.launch >= 0))
    if len(rows) < FEWEST:
        return _unrelated(trace) if not len(rows) else trace
    delay = trace.device.start[rows] - trace.host.start[links.launch[rows]]
    shift = _shift(trace, links, rows, delay)
    if not shift:
        return trace
    apart = "behind" if shift > 0 else "ahead of"
    message = (
        f"the device's clock was {abs(shift) / 1e6:,.3f} ms {apart} the host's, by {len(rows)} launches and their "
        "work: device rows were moved so that none starts before its launch"
    )
    return _warned(
        replace(trace, device=replace(trace.device, start=trace.device.start + shift)),
        TraceWarning(APART, len(rows), message),
    )


def _shift(trace: Trace, links: Links, rows: Int64, delay: Int64) -> int:
    """Return what to add to the device's times, ns; 0 where they agree with the host's."""
    least = int(delay.min())
    if median(delay) < -DRIFT_NS:
        return -least
    return -least if least > WAIT_NS and _outlives_a_wait(trace, links, rows) else 0


def _outlives_a_wait(trace: Trace, links: Links, rows: Int64) -> bool:
    """Return whether work runs on after a call that waited for all that was launched before it."""
    host, device = trace.host, trace.device
    waits = np.flatnonzero(matching(trace.texts, host.name, lambda name: _WAITS_FOR_ALL.match(name) is not None))
    launched = host.start[links.launch[rows]]
    order = np.argsort(launched, kind="stable")
    launched, end = launched[order], np.maximum.accumulate((device.start[rows] + device.duration[rows])[order])
    before = np.searchsorted(launched, host.start[waits]) - 1
    waits, before = waits[before >= 0], before[before >= 0]
    return bool((end[before] > host.start[waits] + host.duration[waits] + DRIFT_NS).any())


def _unrelated(trace: Trace) -> Trace:
    """Return `trace` with a warning where the device's rows lie wholly outside the time of the host's."""
    host, work = trace.host, is_busy(trace.device)
    if not len(host) or not work.any():
        return trace
    first, last = int(host.start[0]), int((host.start + host.duration).max())
    start = trace.device.start[work]
    gap = max(first - int((start + trace.device.duration[work]).max()), int(start[0]) - last)
    if gap < WAIT_NS:
        return trace
    message = (
        f"the device's rows lie {gap / 1e6:,.1f} ms away from all of the host's, and no launch links them: their "
        "clocks are not the same, and nothing is concluded from gaps"
    )
    return _warned(trace, TraceWarning(UNKNOWN, int(work.sum()), message))


def _warned(trace: Trace, warning: TraceWarning) -> Trace:
    return replace(trace, facts=replace(trace.facts, warnings=(*trace.facts.warnings, warning)))
