"""Where the host waits for the device: synchronisation, copies, the allocator, a full launch queue.

A call waits for as long as it lasts while the device works. That alone costs nothing: a host that is far ahead may
wait. What waiting costs is told by `Bounds`: no more than the device was idle for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracelock.analysis.costs import Waiting, WaitKind
from tracelock.analysis.intervals import Intervals, Mask, length, lengths_within, union
from tracelock.analysis.names import is_synchronising, matching
from tracelock.analysis.nesting import Tree, of_kinds
from tracelock.analysis.places import Places, longest
from tracelock.trace.columns import DeviceKind, HostKind, Int32, Int64

_COPIERS: Final = ("aten::to", "aten::_to_copy", "aten::copy_", "aten::cuda")
LONG_CALL = 50_000  # ns: HTA's limit of an unusually long runtime call; a launch takes 3-15 µs
_ALLOCATOR: Final = re.compile(
    r"(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost|HostMalloc|HostFree|MallocAsync|FreeAsync|MallocManaged)$"
    r"|(cu|hip)Mem(Create|Release|Map|Unmap|AddressReserve|AddressFree|Alloc|Free)(_v2)?$"
)
_COPY: Final = re.compile(r"(cuda|hip|cu|mu|musa)Memcpy")
_LAUNCH: Final = re.compile(
    r"(cuda|hip|cu|mu|musa)(Launch|ExtLaunch|ModuleLaunch|ExtModuleLaunch|GraphLaunch|MemsetAsync)"
)


@dataclass(frozen=True)
class Calls:
    """Calls in which the host can wait, shape (n,): their host rows, kinds, and time while the device worked."""

    rows: Int64
    kinds: tuple[WaitKind, ...]
    waiting: Int64  # ns
    stall: Int64  # ns: the gap of the device's work that each call ends in


def waiting_calls(places: Places, busy: Intervals, low: int, high: int) -> Calls:
    """Return the calls of [low, high) in which the host waits, or could.

    Parameters
    ----------
    busy
        When the device works.
    low, high
        The host's time from the first step to the end of the last, ns.
    """
    known, trace = places.known, places.known.trace
    host = trace.host
    runtime = of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER)) & (host.start >= low) & (host.start < high)
    synchronises = runtime & matching(trace.texts, host.name, is_synchronising)
    allocates = runtime & matching(trace.texts, host.name, lambda name: _ALLOCATOR.match(name) is not None)
    long_call = runtime & (host.duration > LONG_CALL)
    copies = long_call & matching(trace.texts, host.name, lambda name: _COPY.match(name) is not None)
    launches = long_call & matching(trace.texts, host.name, lambda name: _LAUNCH.match(name) is not None)
    rows = np.flatnonzero(synchronises | allocates | copies | launches)
    rows = rows[_outermost(known.tree, rows, synchronises | allocates | copies | launches)]
    of_a_copy = _in_copies_to_the_device(places)
    kinds = tuple(_kind(bool(allocates[row]), bool(launches[row]), bool(of_a_copy[row])) for row in rows)
    end = host.start[rows] + host.duration[rows]
    return Calls(rows, kinds, lengths_within(busy, host.start[rows], end), _gaps_at(busy, end))


def _gaps_at(busy: Intervals, times: Int64) -> Int64:
    """Return how long the gap between two stretches of work is that each time lies in, ns.

    Counted once for the first of the times; 0 while the device works, before its first work and after its last.
    """
    if len(busy) < 2:
        return np.zeros(len(times), np.int64)
    after = np.searchsorted(busy.start, times, side="right")
    inside = (after > 0) & (after < len(busy)) & (times >= busy.end[after - 1])
    first = np.zeros(len(times), np.bool_)
    first[np.unique(after, return_index=True)[1]] = True
    at = np.minimum(after, len(busy) - 1)
    return np.where(inside & first, busy.start[at] - busy.end[at - 1], 0)


def _outermost(tree: Tree, rows: Int64, chosen: Mask) -> Mask:
    """Return which of `rows` lie directly in no other chosen row: a driver call inside its runtime call is one wait."""
    parent = tree.parent[rows]
    return ~((parent >= 0) & chosen[parent])


def _kind(allocates: bool, launches: bool, copies: bool) -> WaitKind:
    if allocates:
        return "allocation"
    if launches:
        return "queue"
    return "copy" if copies else "synchronization"


def _in_copies_to_the_device(places: Places) -> Mask:
    """Return which host rows belong to a copy from host to device: its call, and calls beside it in one operator.

    Only copies that the program asks for count; an operator that copies its arguments (``aten::index`` with an index
    on the host) synchronises by accident.
    """
    trace, tree, links = places.known.trace, places.known.tree, places.known.links
    inside = np.zeros(len(trace.host), np.bool_)
    to_device = matching(trace.texts, trace.device.name, lambda name: "HtoD" in name)
    copies = np.flatnonzero(to_device & (trace.device.kind == DeviceKind.MEMCPY) & (links.launch >= 0))
    copies = copies[asked_for(places, links.launch[copies])]
    inside[links.launch[copies]] = True
    operators = np.zeros(len(trace.host), np.bool_)
    operators[links.operator[copies][links.operator[copies] >= 0]] = True
    has_parent = tree.parent >= 0
    inside |= has_parent & operators[tree.parent]
    return inside


def asked_for(places: Places, launches: Int32) -> Mask:
    """Return which launches lie in an operator that copies and does nothing else, or in none."""
    trace, outer = places.known.trace, places.outermost(launches)
    return (outer < 0) | matching(trace.texts, trace.host.name[outer], lambda name: name in _COPIERS)


def waits(places: Places, calls: Calls, steps: int) -> tuple[Waiting, ...]:
    """Return the calls by kind and by the outermost operator around them, the longest waiting first."""
    trace, outer = places.known.trace, places.outermost(calls.rows)
    named = np.where(outer >= 0, outer, calls.rows)
    groups: dict[tuple[WaitKind, str], list[int]] = {}
    for index, kind in enumerate(calls.kinds):
        groups.setdefault((kind, trace.texts[trace.host.name[named[index]]]), []).append(index)
    found = [_waiting(places, calls, np.array(members), key, steps) for key, members in groups.items()]
    return tuple(sorted(found, key=lambda wait: -wait.waiting_us))


def _host_time(places: Places, rows: Int64) -> int:
    """Return the time of the calls and of the innermost operators around them, ns."""
    host, parent = places.known.trace.host, places.known.tree.parent[rows]
    around = np.unique(np.where((parent >= 0) & places.operators[parent], parent, rows))
    return length(union(host.start[around], host.start[around] + host.duration[around]))


def _waiting(places: Places, calls: Calls, members: Int64, key: tuple[WaitKind, str], steps: int) -> Waiting:
    rows, duration = calls.rows[members], places.known.trace.host.duration
    return Waiting(
        kind=key[0],
        name=key[1],
        calls_per_step=len(rows) / steps,
        host_us=_host_time(places, rows) / steps / 1000,
        waiting_us=int(calls.waiting[members].sum()) / steps / 1000,
        stall_us=int(calls.stall[members].sum()) / steps / 1000,
        rows=places.host_rows(longest(duration, rows)),
    )
