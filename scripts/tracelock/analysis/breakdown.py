"""Where a step went: exclusive parts by precedence, which sum to the step.

The roles and their order are those of the TensorBoard profiler plugin: Kernel > Memcpy > Memset > Communication >
Runtime > DataLoader > CPU op > Other. Each role holds the time that its rows cover and that no role before it held, on
any thread and any device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tracelock.analysis.intervals import EMPTY, Intervals, cover, join, lengths_within
from tracelock.analysis.model import Breakdown
from tracelock.analysis.names import is_collective_call, is_loading, is_step, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.parts import STEP
from tracelock.trace.columns import DeviceKind, HostKind, Int64, Trace


def break_down(
    trace: Trace, start: Int64, end: Int64, is_collective: Callable[[str], bool] = is_collective_call
) -> Int64:
    """Return how much of each window [start, end) each role holds, ns; shape (n, 8), columns as `parts.STEP`.

    Parameters
    ----------
    is_collective
        Which names of host rows are communication.

    """
    parts = np.empty((len(start), len(STEP)), np.int64)
    held, before = EMPTY, np.zeros(len(start), np.int64)
    for column, role in enumerate(_roles(trace, is_collective)):
        held = join(held, role)
        now = lengths_within(held, start, end)
        parts[:, column] = now - before
        before = now
    parts[:, -1] = end - start - before
    return parts


def _roles(trace: Trace, is_collective: Callable[[str], bool]) -> Iterator[Intervals]:
    """Yield the time of each role but the last."""
    device, host = trace.device, trace.host
    for kind in (DeviceKind.KERNEL, DeviceKind.MEMCPY, DeviceKind.MEMSET):
        yield cover(device.start, device.duration, device.kind == kind)
    named = of_kinds(host, (HostKind.OPERATOR, HostKind.ANNOTATION))
    named &= ~matching(trace.texts, host.name, is_step)
    communication = named & matching(trace.texts, host.name, is_collective)
    loading = named & matching(trace.texts, host.name, is_loading)
    yield cover(host.start, host.duration, communication)
    yield cover(host.start, host.duration, of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER)))
    yield cover(host.start, host.duration, loading)
    yield cover(host.start, host.duration, named)


def to_breakdown(parts: Int64 | list[float]) -> Breakdown:
    """Return one row of `break_down` in microseconds."""
    return Breakdown(*(float(part) / 1000 for part in parts))
