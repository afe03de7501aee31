"""What the optimizer costs host and device: parameters one by one are many short kernels."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.costs import Updating
from tracelock.analysis.intervals import Mask, length, union
from tracelock.analysis.marked import HostSteps
from tracelock.analysis.names import matching
from tracelock.analysis.nesting import by_thread
from tracelock.analysis.places import Places
from tracelock.analysis.prepared import Prepared
from tracelock.trace.columns import DeviceKind, HostKind, Int64


def is_update(name: str) -> bool:
    """Return whether a row is PyTorch's label of an optimizer's step."""
    return name.startswith("Optimizer.step#")


def updating(places: Places, steps: HostSteps) -> Updating | None:
    """Return the optimizer's part of the steps, means; None where no step labels one."""
    known, host = places.known, places.known.trace.host
    labels = np.flatnonzero(matching(known.trace.texts, host.name, is_update) & (steps.of(host.start) >= 0))
    if not len(labels):
        return None
    low, high = host.start[labels], host.start[labels] + host.duration[labels]
    kernels, outer = _launched(known, low, high), _outermost(places, low, high)
    count, duration = len(steps), known.trace.device.duration
    return Updating(
        host_us=length(union(low, high)) / count / 1000,
        operators_per_step=len(outer) / count,
        one_by_one=bool(len(outer)) and not _is_together(known, outer),
        kernels_per_step=len(kernels) / count,
        kernel_us=float(duration[kernels].mean()) / 1000 if len(kernels) else None,
        device_us=_spans(known, kernels, low) / count / 1000,
    )


def _within(times: Int64, low: Int64, high: Int64) -> Mask:
    """Return which times lie in one of the stretches [low, high), which are in order and apart."""
    at = np.searchsorted(low, times, side="right") - 1
    return (at >= 0) & (times < high[at])


def _launched(known: Prepared, low: Int64, high: Int64) -> Int64:
    """Return the kernels whose launch lies in one of the stretches."""
    device, launch = known.trace.device, known.links.launch
    rows = np.flatnonzero((device.kind == DeviceKind.KERNEL) & (launch >= 0))
    return rows[_within(known.trace.host.start[launch[rows]], low, high)]


def _is_together(known: Prepared, rows: Int64) -> bool:
    """Return whether some operator takes many parameters at once."""
    together = matching(
        known.trace.texts, known.trace.host.name[rows], lambda name: "_foreach_" in name or "_fused_" in name
    )
    return bool(together.any())


def _outermost(places: Places, low: Int64, high: Int64) -> Int64:
    """Return the operators in the stretches that lie in no other one."""
    known, is_operator = places.known, places.operators
    found: list[Int64] = [np.empty(0, np.int64)]
    for thread in by_thread(known.trace.host, (HostKind.OPERATOR,)):
        parent = known.tree.parent[thread]
        outer = thread[is_operator[thread] & ((parent < 0) | ~is_operator[parent])]
        found.append(outer[_within(known.trace.host.start[outer], low, high)].astype(np.int64))
    return np.concatenate(found)


def _spans(known: Prepared, kernels: Int64, low: Int64) -> int:
    """Return the sum over the stretches of the time from their first kernel to their last, ns."""
    device = known.trace.device
    stretch = np.searchsorted(low, known.trace.host.start[known.links.launch[kernels]], side="right") - 1
    first = np.full(len(low), np.iinfo(np.int64).max)
    last = np.zeros(len(low), np.int64)
    np.minimum.at(first, stretch, device.start[kernels])
    np.maximum.at(last, stretch, device.start[kernels] + device.duration[kernels])
    return int((last - first)[last > 0].sum())
