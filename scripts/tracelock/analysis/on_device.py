"""What operators of the host make a device do: the time of its rows that were launched inside of them."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.intervals import Mask, length, union
from tracelock.analysis.links import is_busy
from tracelock.analysis.mainthread import MainThread
from tracelock.analysis.names import matching
from tracelock.analysis.nesting import has_above
from tracelock.analysis.transfers import direction
from tracelock.trace.columns import DeviceKind, Int64


def device_ns(main: MainThread, rows: Int64) -> int:
    """Return how long devices work for the host rows `rows`, and for what lies in them at any depth."""
    known = main.places.known
    device, links = known.trace.device, known.links
    if not len(device) or not len(rows):
        return 0
    launched = np.flatnonzero(is_busy(device) & (links.operator >= 0))
    wanted = np.zeros(len(known.trace.host), np.bool_)
    wanted[rows] = True
    by = links.operator[launched]
    mine = launched[wanted[by] | has_above(known.tree.parent, wanted, by)]
    return length(union(device.start[mine], device.start[mine] + device.duration[mine]))


def moving(main: MainThread) -> Mask:
    """Return which host rows copy between host and device, at any depth: batches, and values that are read."""
    known = main.places.known
    device, links, parent = known.trace.device, known.links, known.tree.parent
    found = np.zeros(len(known.trace.host), np.bool_)
    between = matching(known.trace.texts, device.name, lambda name: direction(name) in ("HtoD", "DtoH"))
    at = np.unique(links.operator[between & (device.kind == DeviceKind.MEMCPY) & (links.operator >= 0)])
    while len(at):
        found[at] = True
        at = np.unique(parent[at])
        at = at[(at >= 0) & ~found[np.maximum(at, 0)]]
    return found
