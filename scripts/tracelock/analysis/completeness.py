"""Which steps the recording holds to their end, and what may be summed where the file was cut."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.analysis.nesting import of_kinds
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

ENOUGH = 0.8  # of the rows of a like step: below it, rows are missing (the TensorBoard plugin's figure)


def complete_steps(trace: Trace, step: Int32, start: Int64, end: Int64) -> Mask:
    """Return which of the steps [start, end] of the host are complete.

    A profiler that stops before the device is done loses the last step's work. A file that was cut loses rows of any
    step, since it holds operators first and device rows later: there each step must have about as many rows of each
    kind as the fullest one.

    Parameters
    ----------
    step
        The step that launched each device row, -1 without.

    """
    launched = np.bincount(step[step >= 0], minlength=len(start))
    if trace.facts.quality == "partial":
        return _uncut(trace, launched, start, end)
    complete = np.ones(len(start), np.bool_)
    if launched.any():
        last = int(np.flatnonzero(launched)[-1])
        complete[last + 1 :] = False
        complete[last] = last == 0 or launched[last] >= ENOUGH * launched[last - 1]
    return complete


def _uncut(trace: Trace, launched: Int64, start: Int64, end: Int64) -> Mask:
    if lost_device_rows(trace):
        return np.zeros(len(start), np.bool_)
    counts = [launched]
    for kind in (HostKind.OPERATOR, HostKind.RUNTIME):
        begun = trace.host.start[of_kinds(trace.host, (kind,))]
        counts.append(np.searchsorted(begun, end) - np.searchsorted(begun, start))
    complete = np.ones(len(start), np.bool_)
    for each in counts:
        complete &= each >= ENOUGH * each.max()
    return complete


def lost_device_rows(trace: Trace) -> bool:
    """Return whether a cut file ends before its device rows: it names a device, or calls its runtime, but has none."""
    named = bool(trace.facts.devices) or bool(of_kinds(trace.host, (HostKind.RUNTIME, HostKind.DRIVER)).any())
    return trace.facts.quality == "partial" and named and not len(trace.device)
