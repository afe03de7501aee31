"""Which steps the recording holds to their end, and what may be summed where the file was cut."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.analysis.nesting import of_kinds
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

ENOUGH = 0.8  # of the rows of a like step: below it, rows are missing (the TensorBoard plugin's figure)
LEAST = 10  # operators of a step: fewer vary too much to tell a piece of one


def complete_steps(trace: Trace, step: Int32, start: Int64, end: Int64) -> Mask:
    """Return which of the steps [start, end] of the host are complete.

    A profiler that stops before the device is done loses the last step's work. One that stops anywhere but at the end
    of a step leaves a piece of one: without a device its last step has fewer operators than any other. A file that was
    cut loses rows of any step, since it holds operators first and device rows later: there each step must have about
    as many rows of each kind as the fullest one.

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
    elif len(start) > 1:
        operators = _begun_inside(trace, HostKind.OPERATOR, start, end)
        least = int(operators[:-1].min())
        complete[-1] = least < LEAST or operators[-1] >= ENOUGH * least
    return complete


def _uncut(trace: Trace, launched: Int64, start: Int64, end: Int64) -> Mask:
    if lost_device_rows(trace):
        return np.zeros(len(start), np.bool_)
    counts = [launched]
    counts += [_begun_inside(trace, kind, start, end) for kind in (HostKind.OPERATOR, HostKind.RUNTIME)]
    complete = np.ones(len(start), np.bool_)
    for each in counts:
        complete &= each >= ENOUGH * each.max()
    return complete


def _begun_inside(trace: Trace, kind: HostKind, start: Int64, end: Int64) -> Int64:
    """Return how many host rows of a kind begin in each step [start, end), on any thread; shape (n,)."""
    begun = trace.host.start[of_kinds(trace.host, (kind,))]
    return np.searchsorted(begun, end) - np.searchsorted(begun, start)


def lost_device_rows(trace: Trace) -> bool:
    """Return whether a cut file ends before its device rows: it names a device, or calls its runtime, but has none."""
    named = bool(trace.facts.devices) or bool(of_kinds(trace.host, (HostKind.RUNTIME, HostKind.DRIVER)).any())
    return trace.facts.quality == "partial" and named and not len(trace.device)
