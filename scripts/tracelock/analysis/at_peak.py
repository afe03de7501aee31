"""What lived when the memory was highest, and in which part of the step it had been allocated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask
from tracelock.analysis.levels import Levels, device_levels
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import Tree, of_kinds
from tracelock.analysis.owners import freed_at, innermost
from tracelock.trace.columns import HostKind, Int64, Trace

PHASES = ("forward", "backward", "optimizer", "loading", "outside of operators")
NO_ADDRESSES = "the records have no addresses (torch before 1.10)"
LISTED = 200


@dataclass(frozen=True)
class Living:
    """Memory that one operator allocated in one part of a step, and that lived at the peak."""

    phase: str  # one of PHASES
    name: str  # of the innermost operator; "" outside of any
    allocations: int
    bytes: int


@dataclass(frozen=True)
class Peak:
    """The moment at which most memory was allocated on one device, as far as the trace was recorded."""

    device: str
    time_us: float
    allocated_bytes: int  # by the allocator's own counter
    before_bytes: int | None  # of it, allocated before the recording began; None where the records do not tell
    living: tuple[Living, ...]  # largest first
    why_not: str | None = None  # why `living` is not known


def peaks(trace: Trace, tree: Tree, origin: int) -> tuple[Peak, ...]:
    """Return the peak of each device whose records carry totals; times since `origin` (ns) in microseconds."""
    return tuple(_peak(trace, tree, levels, origin) for levels in device_levels(trace) if levels.totals)


def _peak(trace: Trace, tree: Tree, levels: Levels, origin: int) -> Peak:
    at = int(levels.allocated.argmax())
    height, time = int(levels.allocated[at]), int(levels.time[at])
    address = trace.memory.address[levels.rows]
    moment = (time - origin) / 1000
    if not (address != 0).all():
        return Peak(levels.device, moment, height, None, (), NO_ADDRESSES)
    before = np.arange(len(address)) <= at
    lives = np.flatnonzero(before & (levels.change > 0) & _held_at(levels, address, at))
    found = _living(trace, tree, levels, lives)
    return Peak(levels.device, moment, height, max(0, height - sum(each.bytes for each in found)), found[:LISTED])


def _held_at(levels: Levels, address: npt.NDArray[np.uint64], at: int) -> Mask:
    """Return which allocations were freed by none of the records up to `at`, shape (records,)."""
    return freed_at(replace(levels, time=np.arange(len(address))), address) > at  # places, as times may be equal


def _living(trace: Trace, tree: Tree, levels: Levels, lives: Int64) -> tuple[Living, ...]:
    time, track = levels.time[lives], trace.memory.track[levels.rows[lives]]
    row = innermost(trace, tree, time, track)
    names = np.where(row >= 0, trace.host.name[row], -1) if len(trace.host) else row
    phases = _phases(trace, tree, row)
    sums: dict[tuple[str, str], list[int]] = {}
    for name, phase, size in zip(names.tolist(), phases, levels.change[lives].tolist(), strict=True):
        entry = sums.setdefault((phase, "" if name < 0 else trace.texts[name]), [0, 0])
        entry[0] += 1
        entry[1] += size
    found = [Living(phase, name, count, size) for (phase, name), (count, size) in sums.items()]
    return tuple(sorted(found, key=lambda each: (-each.bytes, each.name, each.phase)))


def _phases(trace: Trace, tree: Tree, row: Int64) -> list[str]:
    """Return the part of the step that each of `row` belongs to, by what is around it."""
    host = trace.host
    if not len(host):
        return [PHASES[-1]] * len(row)
    called = of_kinds(host, (HostKind.OPERATOR, HostKind.ANNOTATION))
    marks = (
        ("optimizer", called & matching(trace.texts, host.name, lambda name: name.startswith("Optimizer."))),
        ("loading", called & matching(trace.texts, host.name, is_loading)),
        ("backward", called & ((host.forward_thread > 0) | matching(trace.texts, host.name, _is_backward))),
    )
    phase = np.where(row >= 0, PHASES.index("forward"), PHASES.index("outside of operators"))
    at = row.copy()
    climbing = np.flatnonzero(at >= 0)
    while len(climbing):
        told = np.zeros(len(climbing), np.bool_)
        for name, mask in marks:
            here = mask[at[climbing]] & ~told
            phase[climbing[here]] = PHASES.index(name)
            told |= here
        climbing = climbing[~told]
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[at[climbing] >= 0]
    return [PHASES[each] for each in phase.tolist()]


def _is_backward(name: str) -> bool:
    return name.startswith("autograd::engine::evaluate_function")
