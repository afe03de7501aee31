"""The work of the main thread, assembled: what of a step might not have to be."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.intervals import Intervals, length, union
from tracelock.analysis.mainthread import MainThread, Part, main_thread
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.needless import copies, double_us, loops, repeated
from tracelock.analysis.places import Places
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.python_time import between, python_time
from tracelock.analysis.unused import unused
from tracelock.analysis.work import Work
from tracelock.trace.columns import Int64

_TABLES = ("aten::embedding_dense_backward", "aten::embedding_backward", "aten::_embedding_bag_dense_backward")


def work(known: Prepared) -> Work | None:
    """Return what the main thread of the complete steps does; None where the trace marks none."""
    main = main_thread(Places(known))
    if main is None or not len(main):
        return None
    found = repeated(main)
    apart = between(main, found.spans)
    count, double = len(main.steps), double_us(main)
    return Work(
        operators_us=length(_covered(main, np.flatnonzero(main.part != Part.LOADER))) / count / 1000,
        between_us=apart.total / count / 1000,
        between=round(apart.count / count),
        excess_us=apart.excess / 1000,
        backward_us=length(_covered(main, np.flatnonzero(main.part == Part.BACKWARD))) / count / 1000,
        loops=loops(main, found),
        copies=copies(main, found),
        unused=unused(main, found.spans),
        trains=bool(len(main.nodes)),
        double_us=double[0],
        double_device_us=double[1],
        embedding_us=_embedding_us(main),
        python=python_time(main),
        batches=_batches(main),
    )


def _covered(main: MainThread, rows: Int64) -> Intervals:
    return union(main.start[rows], main.end[rows])


def _embedding_us(main: MainThread) -> float:
    """Return the time a step in nodes that make dense gradients of tables, and in those that keep them."""
    known, host = main.places.known, main.places.known.trace.host
    dense = matching(known.trace.texts, host.name, lambda name: name in _TABLES)
    tables = np.flatnonzero(dense & (host.track == known.windows.track) & (main.steps.of(host.start) >= 0))
    if not len(tables):
        return 0.0
    return length(union(host.start[tables], host.start[tables] + host.duration[tables])) / len(main.steps) / 1000


def _batches(main: MainThread) -> int:
    """Return how many batches the loader gave in the complete steps."""
    known, host = main.places.known, main.places.known.trace.host
    loads = matching(known.trace.texts, host.name, is_loading) & (main.steps.of(host.start) >= 0)
    return int(loads.sum())
