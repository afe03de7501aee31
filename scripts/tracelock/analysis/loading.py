"""What the training loop waited for its data: who loads, how long each step waited, and what ran meanwhile.

A wait is a row that PyTorch records around ``next(iterator)``: ``enumerate(DataLoader)#<iterator>.__next__``. The
iterator's name tells who loads; worker processes themselves are not in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask, length, lengths_within, union
from tracelock.analysis.marked import host_steps
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import Tree
from tracelock.analysis.sections import Loading, LoadingOperator, LoadingWait
from tracelock.analysis.steps import Windows
from tracelock.trace.columns import HostKind, Trace

MODES = {"_SingleProcessDataLoaderIter": "main process", "_MultiProcessingDataLoaderIter": "workers"}

Rows = npt.NDArray[np.intp]


def loading(trace: Trace, tree: Tree, windows: Windows, chosen: Mask) -> Loading | None:
    """Return what was waited for data, None where the trace has no such row.

    Parameters
    ----------
    tree
        The host rows, nested; operators among them.
    windows
        The steps; what is said of a step rests on the complete ones that are marked in the trace.
    chosen
        The host rows to look at, shape (n,).

    """
    host = trace.host
    rows = np.flatnonzero(matching(trace.texts, host.name, is_loading) & chosen)
    if not len(rows):
        return None
    waits = union(host.start[rows], host.start[rows] + host.duration[rows])
    calls = rows[~np.isin(tree.parent[rows], rows)]
    inside = _inside(trace, calls, rows)
    worked = union(host.start[inside], host.start[inside] + host.duration[inside])
    steps = host_steps(windows)
    window = int((steps.end - steps.start).sum())
    per_step = lengths_within(waits, steps.start, steps.end)
    begun = np.bincount(steps.of(host.start[calls]) + 1, minlength=len(steps) + 1)[1:]
    iterators = sorted({iterator(trace.texts[name]) for name in np.unique(host.name[rows]).tolist()})
    return Loading(
        mode=mode(iterators),
        iterators=tuple(iterators),
        calls=len(calls),
        wait_us=length(waits) / 1000,
        share=int(per_step.sum()) / window if window else None,
        waits=tuple(map(LoadingWait, steps.names, begun.tolist(), (per_step / 1000).tolist())),
        operators=_operators(trace, tree, inside),
        outside_operators_us=(length(waits) - length(worked)) / 1000,
    )


def iterator(text: str) -> str:
    """Return the iterator that a wait names: ``_SingleProcessDataLoaderIter``."""
    return text.partition("#")[2].removesuffix(".__next__")


def mode(iterators: Sequence[str]) -> str | None:
    """Return who loads: "main process", "workers", "both", or None where no iterator tells."""
    known = {MODES[each] for each in iterators if each in MODES}
    return "both" if len(known) > 1 else known.pop() if known else None


def _inside(trace: Trace, calls: Rows, waits: Rows) -> Rows:
    """Return the operators that ran inside one of `calls` on its thread, and are no `waits` themselves."""
    host = trace.host
    found = []
    for track in np.unique(host.track[calls]):
        lane = calls[host.track[calls] == track]
        rows = np.flatnonzero((host.kind == HostKind.OPERATOR) & (host.track == track))
        rows = rows[~np.isin(rows, waits)]
        before = np.searchsorted(lane, rows) - 1  # rows are in order of start, then longest first
        wait = lane[np.maximum(before, 0)]
        within = (before >= 0) & (host.start[rows] + host.duration[rows] <= host.start[wait] + host.duration[wait])
        found.append(rows[within])
    return np.sort(np.concatenate(found))


def _operators(trace: Trace, tree: Tree, rows: Rows) -> tuple[LoadingOperator, ...]:
    """Return the operators of `rows` by name, the most expensive first."""
    names, position, calls = np.unique(trace.host.name[rows], return_inverse=True, return_counts=True)
    own = np.zeros(len(names), np.int64)
    np.add.at(own, position, tree.self_time[rows])
    found = zip((trace.texts[name] for name in names.tolist()), calls.tolist(), (own / 1000).tolist(), strict=True)
    return tuple(sorted((LoadingOperator(*each) for each in found), key=lambda each: (-each.self_us, each.name)))
