"""From a device row to the call that launched it, and to the operator that made the call.

A device row and its launch carry the same correlation id. Ids 0 and -1 mean that there is none; an id that several
launches share joins nothing, unless the calls are one launch seen twice (a runtime call and the driver call
inside it). The rows of a graph launch all carry the id of that launch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask
from tracelock.analysis.nesting import Tree, of_kinds
from tracelock.trace.columns import DeviceKind, DeviceRows, HostKind, HostRows, Int32, Int64, Trace

SPARSE = 16  # a table of ids may be this many times longer than the ids it holds


@dataclass(frozen=True)
class Links:
    """For each device row, shape (n,): positions among the host rows, -1 where unknown."""

    launch: Int32  # the runtime or driver call
    caller: Int32  # the innermost operator or annotation around that call
    operator: Int32  # the innermost operator around that call

    def share_of_time(self, device: DeviceRows, chosen: Mask) -> float | None:
        """Return how much of the time of the `chosen` device rows (their sum) has a known launch, 0..1."""
        total = int(device.duration[chosen].sum())
        return int(device.duration[chosen & (self.launch >= 0)].sum()) / total if total else None


def is_busy(device: DeviceRows) -> Mask:
    """Return which device rows are work: kernels, copies and sets, not synchronisation and not annotations."""
    return device.kind <= DeviceKind.MEMSET


def link(trace: Trace, tree: Tree) -> Links:
    """Return the launch and the operator of each device row.

    Parameters
    ----------
    tree
        The nesting of the calls of `trace`.

    Notes
    -----
    Where a row has no launch in the file, or its launch lies in no operator, the row's ``External id`` names the
    operator that was running: an operator that no other carries the id of.

    """
    host, device = trace.host, trace.device
    launch = _launches(host, device)
    caller = _climb(tree, launch, of_kinds(host, (HostKind.OPERATOR, HostKind.ANNOTATION)))
    lost = np.flatnonzero((caller < 0) & is_busy(device) & (device.external > 0))
    if len(lost):
        caller[lost] = _by_external(host, device.external[lost])
    return Links(launch, caller, _climb(tree, caller, of_kinds(host, (HostKind.OPERATOR,))))


def _launches(host: HostRows, device: DeviceRows) -> Int32:
    calls = np.flatnonzero(of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER)) & (host.correlation > 0))
    calls = calls[_is_single(host, calls)]
    return lookup(host.correlation[calls], calls, device.correlation)


def _is_single(host: HostRows, calls: npt.NDArray[np.intp]) -> Mask:
    """Return which calls stand for their id: the only one, or the outermost of calls inside one another."""
    order = np.argsort(host.correlation[calls], kind="stable")  # by id, then by start, then longest first
    ordered = calls[order]
    ids = host.correlation[ordered]
    same = ids[1:] == ids[:-1]
    single = np.ones(len(calls), np.bool_)
    if same.any():
        first = np.flatnonzero(np.concatenate(([True], ~same)))
        group = np.cumsum(np.concatenate(([True], ~same))) - 1
        single[order] = (np.arange(len(calls)) == first[group]) & _is_nested(host, ordered, first, group)[group]
    return single


def _is_nested(host: HostRows, ordered: npt.NDArray[np.intp], first: Int64, group: Int64) -> Mask:
    """Return for each group of calls with one id whether the first holds all others."""
    outer = ordered[first][group]
    end = host.start[ordered] + host.duration[ordered]
    inside = (host.track[ordered] == host.track[outer]) & (end <= host.start[outer] + host.duration[outer])
    return np.logical_and.reduceat(inside, first)


def lookup(keys: Int64, values: npt.NDArray[np.intp], wanted: Int64) -> Int32:
    """Return the value of each wanted key, -1 where there is none; the keys are positive and differ.

    Correlation ids are nearly dense, so that a table answers in one step; sparse ones are sought by halving.
    """
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    low, high = int(keys.min()), int(keys.max())
    if high - low < SPARSE * len(keys) + 1024:
        table = np.full(high - low + 1, -1, np.int32)
        table[keys - low] = values
        inside = (wanted >= low) & (wanted <= high)
        return np.where(inside, table[np.where(inside, wanted - low, 0)], np.int32(-1))
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, values[order][at], -1).astype(np.int32)


def _climb(tree: Tree, rows: Int32, wanted: Mask) -> Int32:
    """Return for each of `rows` itself or the innermost row around it that is wanted; -1 without."""
    found = rows.copy()
    climbing = np.flatnonzero(found >= 0)
    climbing = climbing[~wanted[found[climbing]]]
    while len(climbing):
        at = tree.parent[found[climbing]]
        found[climbing] = at
        climbing = climbing[at >= 0]
        climbing = climbing[~wanted[found[climbing]]]
    return found


def _by_external(host: HostRows, wanted: Int64) -> Int32:
    rows = np.flatnonzero(of_kinds(host, (HostKind.OPERATOR,)) & (host.external > 0))
    ids, first, counts = np.unique(host.external[rows], return_index=True, return_counts=True)
    once = counts == 1
    return lookup(ids[once], rows[first[once]], wanted)
