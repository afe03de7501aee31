"""The operators of the thread that trains, in order, and which part of a step each belongs to."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.analysis.marked import HostSteps, host_steps
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.places import Places
from tracelock.analysis.repeats import inside
from tracelock.trace.columns import HostKind, Int64

NODE = "autograd::engine::evaluate_function"


class Part(enum.IntEnum):
    """The part of a step that an operator belongs to."""

    OWN = 0  # the user's code: forward pass, loss, logging
    BACKWARD = 1  # a node of the graph
    OPTIMIZER = 2
    LOADER = 3


@dataclass(frozen=True)
class MainThread:
    """The outermost operators of the complete steps on the thread that marks them, shape (n,) each."""

    places: Places
    steps: HostSteps
    rows: Int64  # positions among the host rows
    start: Int64  # ns
    end: Int64
    step: Int64
    part: Int64
    used: Mask  # of OWN: a node of the backward pass belongs to it
    tracked: bool  # whether the trace has what `used` is told by

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def nodes(self) -> Int64:
        """The host rows of the nodes of the backward pass in the steps; that of a device has its own thread."""
        trace = self.places.known.trace
        found = np.flatnonzero(self.places.operators & matching(trace.texts, trace.host.name, is_node))
        inside: Int64 = found[self.steps.of(trace.host.start[found]) >= 0]
        return inside


def main_thread(places: Places) -> MainThread | None:
    """Return the operators of the main thread, None where the trace marks no step."""
    known, host = places.known, places.known.trace.host
    steps = host_steps(known.windows)
    if not len(steps):
        return None
    rows, texts = places.outer, known.trace.texts
    step = steps.of(host.start[rows])
    rows, step = rows[step >= 0], step[step >= 0]
    part = np.zeros(len(rows), np.int64)
    part[matching(texts, host.name[rows], is_node)] = Part.BACKWARD
    part[inside(known.trace, known.tree, rows, _is_optimizer)] = Part.OPTIMIZER
    part[inside(known.trace, known.tree, rows, is_loading)] = Part.LOADER
    used, tracked = _used(places, rows, part)
    start = host.start[rows]
    return MainThread(places, steps, rows, start, start + host.duration[rows], step, part, used, tracked)


def is_node(name: str) -> bool:
    """Return whether a row is a node of the backward pass."""
    return name.startswith(NODE)


def _is_optimizer(name: str) -> bool:
    return name.startswith("Optimizer.")


def _used(places: Places, rows: Int64, part: Int64) -> tuple[Mask, bool]:
    """Return which of `rows` hold an operator that made a node of the backward pass.

    An operator carries the number of the node that is made next. Of several with one number the last has made it;
    those before it made none: what they compute needs no gradient.
    """
    host = places.known.trace.host
    nodes = of_kinds(host, (HostKind.OPERATOR,)) & matching(places.known.trace.texts, host.name, is_node)
    numbers = np.unique(host.sequence[nodes & (host.sequence >= 0)])
    numbered = np.flatnonzero(places.operators & (host.sequence >= 0) & (host.track == places.known.windows.track))
    at = np.searchsorted(host.start[rows], host.start[numbered], side="right") - 1
    numbered = numbered[(at >= 0) & (part[at] != Part.BACKWARD)]
    needed = numbered[np.isin(host.sequence[numbered], numbers)]
    _, last = np.unique(host.sequence[needed][::-1], return_index=True)
    needed = np.sort(needed[::-1][last])
    low = np.searchsorted(host.start[needed], host.start[rows])
    high = np.searchsorted(host.start[needed], host.start[rows] + np.maximum(host.duration[rows], 1))
    return high > low, bool(len(numbers) and len(numbered))
