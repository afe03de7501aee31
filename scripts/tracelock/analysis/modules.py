"""What the modules of the model cost, forward and backward, as a tree.

The profiler records a frame ``nn.Module: Linear_0`` around each call of a module (``with_stack`` or
``with_modules``). A module's path is the names of the modules around it. Forward: its frames, and the device rows
launched within. Backward has no frames: an operator there carries the sequence number of the forward operator whose
gradient it computes, and so belongs to the module that this one ran in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tracelock.analysis.flames import depths, innermost_around
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import is_busy
from tracelock.analysis.names import matching
from tracelock.analysis.nesting import of_kinds, outermost
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.stacks import enclosing_frames, path_digests, scatter
from tracelock.trace.columns import HostKind, HostRows, Int32, Int64, Trace

PREFIX = "nn.Module: "
NO_MODULES = "the trace has no frames of modules (with_stack or with_modules)"


@dataclass(frozen=True)
class Module:
    """One module, over all rows that the tables count; device times are None without device rows. Microseconds."""

    name: str  # "Linear_0": the class, and a number that tells its objects apart
    parent: int | None  # position of the module around it; it stands before this one
    calls: int
    forward_us: float  # on the host, modules inside included
    own_forward_us: float  # without the modules inside
    forward_device_us: float | None  # launched in its forward pass, modules inside included
    backward_us: float | None  # host time of its backward operators, modules inside included; None where none is known
    backward_device_us: float | None
    allocated_bytes: int | None  # in its forward pass, frees not subtracted, modules inside included


def modules(known: Prepared, allocated: Int64 | None) -> tuple[Module, ...]:
    """Return the modules of the trace, outer ones first and by time; none where the trace has no frames of modules.

    Parameters
    ----------
    allocated
        Bytes that each host row allocated itself, see `tracelock.analysis.owners.allocated_by_row`.
    """
    trace, host = known.trace, known.trace.host
    frames = of_kinds(host, (HostKind.PYTHON,)) & matching(trace.texts, host.name, lambda name: name.startswith(PREFIX))
    rows = np.flatnonzero(frames & known.host)
    if not len(rows):
        return ()
    around = enclosing_frames(host)
    outer = _places(rows, innermost_around(around, rows, frames & known.host))
    path, first, member = _paths(trace, rows, outer)
    ran_in = _module_of_rows(around, rows, frames & known.host, member, len(host))
    return _sums(known, allocated, _Tree(rows, outer, path, first, member, ran_in))


@dataclass(frozen=True)
class _Tree:
    """Frames of modules (f of them) and their paths (p)."""

    rows: Int64  # host rows of the frames, (f,)
    outer: Int32  # the frame around each, (f,)
    parent: Int32  # of each path, (p,)
    first: Int64  # a frame of each path, (p,)
    member: Int32  # the path of each frame, (f,)
    ran_in: Int32  # the path that each host row ran in, -1 without; (host,)

    def total(self, own: Int64) -> Int64:
        """Return what each path and the paths inside it have; shape (p,)."""
        total = own.astype(np.int64)
        depth = depths(self.parent)
        for path in np.argsort(-depth, kind="stable").tolist():
            if self.parent[path] >= 0:
                total[self.parent[path]] += total[path]
        return total


def _places(rows: Int64, wanted: Int32) -> Int32:
    place = np.searchsorted(rows, wanted).astype(np.int32)
    place[wanted < 0] = -1
    return place


def _paths(trace: Trace, rows: Int64, outer: Int32) -> tuple[Int32, Int64, Int32]:
    """Return the parent of each path, a frame of each, and the path of each frame."""
    digest = path_digests(scatter(trace.host.name[rows]), outer.copy())
    _, first, member = np.unique(digest, return_index=True, return_inverse=True)
    member = member.reshape(-1)
    parent = np.where(outer[first] >= 0, member[outer[first]], -1).astype(np.int32)
    return parent, first.astype(np.int64), member.astype(np.int32)


def _module_of_rows(around: Int32, rows: Int64, frames: Mask, member: Int32, count: int) -> Int32:
    """Return the path that each host row ran in: that of the innermost frame of a module around it."""
    every = np.arange(count, dtype=np.int64)
    at = _places(rows, innermost_around(around, every, frames))
    return np.where(at >= 0, member[at], -1).astype(np.int32)


def _sums(known: Prepared, allocated: Int64 | None, tree: _Tree) -> tuple[Module, ...]:
    trace, host, count = known.trace, known.trace.host, len(tree.parent)
    forward = np.bincount(tree.member, host.duration[tree.rows], minlength=count).astype(np.int64)
    own = forward.copy()
    inner = tree.parent >= 0
    np.subtract.at(own, tree.parent[inner], forward[inner])
    behind = _backward_of(known, tree.ran_in)
    if behind is None:
        behind = np.full(len(host), -1, np.int32)
    told = tree.total(np.bincount(behind[behind >= 0], minlength=count)) > 0  # a gradient is known of these
    device = _device_time(known, tree.ran_in, count) if len(trace.device) else None
    held = None if allocated is None else _by_path(tree.ran_in, allocated, count)
    columns: dict[str, Any] = {
        "forward_us": (forward / 1000).tolist(),
        "own_forward_us": (np.maximum(own, 0) / 1000).tolist(),
        "forward_device_us": None if device is None else (tree.total(device) / 1000).tolist(),
        "backward_us": _where(told, tree.total(_backward_time(known, behind, count)) / 1000),
        "backward_device_us": (
            None if device is None else _where(told, tree.total(_device_time(known, behind, count)) / 1000)
        ),
        "allocated_bytes": None if held is None else tree.total(held).tolist(),
    }
    order = np.lexsort((-forward, depths(tree.parent))).tolist()
    place = {path: number for number, path in enumerate(order)}
    calls = np.bincount(tree.member, minlength=count)
    return tuple(
        Module(
            name=trace.texts[int(host.name[tree.rows[tree.first[path]]])].removeprefix(PREFIX),
            parent=place.get(int(tree.parent[path])),
            calls=int(calls[path]),
            **_row(columns, path),
        )
        for path in order
    )


def _row(columns: Mapping[str, Any], path: int) -> dict[str, Any]:
    return {name: None if column is None else column[path] for name, column in columns.items()}


def _where(told: Mask, values: npt.NDArray[np.float64]) -> list[float | None]:
    """Return the values that are told; None where no operator of the backward pass was found: there may be one."""
    return [value if known else None for value, known in zip(values.tolist(), told.tolist(), strict=True)]


def _by_path(path: Int32, values: Int64, count: int) -> Int64:
    """Return the sum of `values` by path; rows of the path -1 count nowhere."""
    inside = path >= 0
    return np.bincount(path[inside], values[inside], minlength=count).astype(np.int64)


def _device_time(known: Prepared, path: Int32, count: int) -> Int64:
    """Return the device time by the path of the host row that launched it, ns; shape (p,)."""
    device = known.trace.device
    rows = np.flatnonzero(is_busy(device) & known.device & (known.links.caller >= 0))
    return _by_path(path[known.links.caller[rows]], device.duration[rows], count)


def _backward_of(known: Prepared, ran_in: Int32) -> Int32 | None:
    """Return the path that each host row computes gradients for, -1 without; None where no row tells.

    Of the forward operators that carry a sequence number the last one made the gradient's node: those before only saw
    which number would be next.
    """
    host = known.trace.host
    operators = of_kinds(host, (HostKind.OPERATOR,)) & (host.sequence >= 0)
    backward = np.flatnonzero(operators & (host.forward_thread > 0))
    forward = np.flatnonzero(operators & (host.forward_thread <= 0) & (ran_in >= 0))
    if not len(backward) or not len(forward):
        return None
    found = np.full(len(host), -1, np.int32)
    for thread in np.unique(host.forward_thread[backward]).tolist():
        mine = backward[host.forward_thread[backward] == thread]
        candidates = [
            _forward_of(host, forward[host.track[forward] == track], mine)
            for track in np.unique(host.track[forward]).tolist()
        ]
        origin = max(candidates, key=lambda rows: int((rows >= 0).sum()))
        found[mine[origin >= 0]] = ran_in[origin[origin >= 0]]
    return _inherited(known, found, host.forward_thread > 0)


def _forward_of(host: HostRows, forward: Int64, backward: Int64) -> Int64:
    """Return for each of `backward` the last of the `forward` rows, of one thread, that has its number; -1 without.

    Numbers are those of a thread; which one an id of ``Fwd thread id`` means is told by the thread with most partners.
    """
    order = np.argsort(host.sequence[forward], kind="stable")
    numbers = host.sequence[forward][order]
    last = np.append(np.flatnonzero(np.diff(numbers)), len(numbers) - 1)
    at = np.minimum(np.searchsorted(numbers[last], host.sequence[backward]), len(last) - 1)
    partner = forward[order][last[at]]
    met = (numbers[last][at] == host.sequence[backward]) & (host.start[partner] < host.start[backward])
    return np.where(met, partner, -1)


def _inherited(known: Prepared, path: Int32, marked: Mask) -> Int32:
    """Return `path` with the rows inside a marked one given its path."""
    rows = np.arange(len(path), dtype=np.int64)
    around = innermost_around(known.tree.parent, rows, marked & (path >= 0))
    return np.where((path < 0) & (around >= 0), path[around], path).astype(np.int32)


def _backward_time(known: Prepared, behind: Int32, count: int) -> Int64:
    """Return the host time of the outermost backward operators by path, ns."""
    host = known.trace.host
    rows = np.flatnonzero((behind >= 0) & known.host)
    outer = rows[outermost((behind >= 0).astype(np.int32), known.tree.parent, rows)]
    return _by_path(behind[outer], host.duration[outer], count)
