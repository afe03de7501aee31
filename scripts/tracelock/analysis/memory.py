"""The memory of each device: curve, peak, growth from step to step, sawtooth, and who allocated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracelock.analysis.growth import slope
from tracelock.analysis.levels import Levels, device_levels
from tracelock.analysis.marked import HostSteps, host_steps
from tracelock.analysis.nesting import Tree
from tracelock.analysis.owners import owners
from tracelock.analysis.sections import Memory, MemoryPoint, Sawtooth
from tracelock.analysis.steps import Windows
from tracelock.trace.columns import HostKind, Int64, Trace

SMALL_BYTES = 1 << 20  # kSmallSize of PyTorch's caching allocator
CURVE_BUCKETS = 500  # two points each at most
ALLOCATOR_CALLS = frozenset(
    f"{vendor}{call}"
    for vendor in ("cuda", "hip")
    for call in ("Malloc", "MallocAsync", "MallocManaged", "Free", "FreeAsync", "ExtMallocWithFlags")
) | frozenset(("cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap"))  # expandable segments

NO_TOTALS = "the trace holds sizes without totals (torch before 1.10)"
RISE = "{}; above its level at the start it rose by {:,} bytes"
NO_RESERVED = "the allocator of this device does not count what it reserves"
FEW_STEPS = "two complete steps are needed"
CUT = "the file was cut; what is left of it reaches {:,} bytes"


def memory(trace: Trace, tree: Tree, windows: Windows, origin: int) -> tuple[tuple[Memory, ...], dict[str, str]]:
    """Return the memory of each device that has records, and why figures of it are unknown, by key path.

    Parameters
    ----------
    tree
        The host rows, nested; operators among them.
    windows
        The steps; what is said of a step rests on the complete ones that are marked in the trace.
    origin
        Time zero of the curves, ns.

    """
    every_step = host_steps(windows)
    found: list[Memory] = []
    unknown: dict[str, str] = {}
    every = device_levels(trace)
    accelerators = [levels for levels in every if levels.ordinal >= 0]
    cut = trace.facts.quality == "partial"
    for number, levels in enumerate(every):
        steps = every_step.until(int(levels.time[-1])) if cut else every_step
        section = replace(
            describe(levels, steps, origin),
            owners=owners(trace, tree, levels, steps, within=cut),
            capacity_bytes=_capacity(trace, levels.ordinal),
        )
        if len(steps) and accelerators == [levels]:
            calls, microseconds = _allocator_calls(trace, steps)
            section = replace(section, allocator_calls_per_step=calls, allocator_us_per_step=microseconds)
        why = _unknown(levels, section)
        if cut:
            why |= _cut_short(section)
            section = replace(section, peak_allocated_bytes=None, peak_reserved_bytes=None)
        found.append(section)
        unknown |= {f"memory[{number}].{key}": reason for key, reason in why.items()}
    return tuple(found), unknown


def _unknown(levels: Levels, section: Memory) -> dict[str, str]:
    found = {}
    if section.peak_allocated_bytes is None:
        rise = max(0, int(levels.allocated.max()))
        found["peak_allocated_bytes"] = found["curve"] = RISE.format(NO_TOTALS, rise)
    if section.peak_reserved_bytes is None:
        found["peak_reserved_bytes"] = NO_RESERVED if levels.totals else NO_TOTALS
    if section.growth_bytes_per_step is None:
        found["growth_bytes_per_step"] = FEW_STEPS
    return found


def _cut_short(section: Memory) -> dict[str, str]:
    """Return why the peaks of a cut file are not told: the highest level may lie in what is lost."""
    peaks = {name: getattr(section, name) for name in ("peak_allocated_bytes", "peak_reserved_bytes")}
    return {name: CUT.format(peak) for name, peak in peaks.items() if peak is not None}


def _capacity(trace: Trace, ordinal: int) -> int | None:
    sizes = [each.properties.get("totalGlobalMem") for each in trace.facts.devices if each.id == ordinal >= 0]
    return sizes[0] if sizes and isinstance(sizes[0], int) and sizes[0] > 0 else None


def _allocator_calls(trace: Trace, steps: HostSteps) -> tuple[float, float]:
    """Return how often a step asks the driver for memory or gives it back, and the time of that in microseconds."""
    host = trace.host
    names = [number for number, text in enumerate(trace.texts) if text in ALLOCATOR_CALLS]
    rows = np.flatnonzero(np.isin(host.kind, (HostKind.RUNTIME, HostKind.DRIVER)) & np.isin(host.name, names))
    rows = rows[steps.of(host.start[rows]) >= 0]
    return len(rows) / len(steps), float(host.duration[rows].sum()) / 1000 / len(steps)


def describe(levels: Levels, steps: HostSteps, origin: int) -> Memory:
    """Return the figures of one device, but for those that need its operators.

    Parameters
    ----------
    origin
        Time zero of the curve, ns.

    """
    at_steps = levels.at(np.append(steps.start, steps.end[-1:])) if len(steps) else steps.start
    growth, interval = slope(at_steps, np.append(steps.place, steps.place[-1:] + 1))
    reserved = levels.reserved
    return Memory(
        device=levels.device,
        peak_allocated_bytes=max(int(levels.allocated.max()), levels.before) if levels.totals else None,
        peak_reserved_bytes=None if reserved is None else int(reserved.max()),
        growth_bytes_per_step=growth,
        growth_interval=interval,
        step_levels=tuple(at_steps.tolist()),
        curve=curve(levels, origin) if levels.totals else (),
        sawtooth=sawtooth(levels, steps),
    )


def curve(levels: Levels, origin: int) -> tuple[MemoryPoint, ...]:
    """Return the level over time in at most ``2 * CURVE_BUCKETS + 2`` points; peak, ends and troughs are kept."""
    kept = thin(levels.time, levels.allocated, CURVE_BUCKETS)
    reserved = [None] * len(kept) if levels.reserved is None else levels.reserved[kept].tolist()
    times = ((levels.time[kept] - origin) / 1000).tolist()
    return tuple(map(MemoryPoint, times, levels.allocated[kept].tolist(), reserved))


def thin(time: Int64, level: Int64, buckets: int) -> npt.NDArray[np.intp]:
    """Return the positions of the lowest and the highest `level` of each of `buckets` equal times, and of both ends.

    The envelope of the curve stays exact, which LTTB does not promise; a short curve is kept whole.
    """
    if len(time) <= 2 * buckets:
        return np.arange(len(time))
    span = max(1, int(time[-1] - time[0]))
    bucket = (time - time[0]) * buckets // (span + 1) if span < 2**53 else np.arange(len(time)) * buckets // len(time)
    order = np.lexsort((level, bucket))
    firsts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
    lasts = np.append(firsts[1:] - 1, len(order) - 1)
    return np.unique(np.concatenate((order[firsts], order[lasts], [0, len(time) - 1])))


def sawtooth(levels: Levels, steps: HostSteps) -> Sawtooth | None:
    """Return how the level moves inside the steps, None without steps."""
    if not len(steps):
        return None
    step = steps.of(levels.time)
    change, step = levels.change[step >= 0], step[step >= 0]
    up = change > 0
    teeth = up[:-1] & (change[1:] < 0) & (step[:-1] == step[1:])
    heights = np.minimum(change[:-1], -change[1:])[teeth]
    return Sawtooth(
        allocations_per_step=int(up.sum()) / len(steps),
        small_allocations_per_step=int((up & (change < SMALL_BYTES)).sum()) / len(steps),
        teeth_per_step=int(teeth.sum()) / len(steps),
        mean_tooth_bytes=float(heights.mean()) if len(heights) else None,
        hills=_hills(levels, steps),
    )


def _hills(levels: Levels, steps: HostSteps) -> float | None:
    """Return the mean over the steps of (all rises and falls) / (2 * height)."""
    values = np.concatenate(([levels.before], levels.allocated))
    first = np.searchsorted(levels.time, steps.start, side="right")  # position in `values` of the level at the start
    last = np.searchsorted(levels.time, steps.end, side="left")
    ratios = []
    for part in (values[low : high + 1] for low, high in zip(first, last, strict=True) if high > low):
        height = int(part.max() - part.min())
        if height:
            ratios.append(float(np.abs(np.diff(part)).sum()) / (2 * height))
    return float(np.mean(ratios)) if ratios else None
