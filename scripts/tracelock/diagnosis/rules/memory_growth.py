"""Memory is kept from step to step: a leak, unlike the growth at a start that ends."""

from __future__ import annotations

import itertools

from tracelock.analysis.sections import Memory, MemoryOwner
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import at
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where a device's memory grows by ``growth_bytes`` a step, surely and to the end."""
    growing = [memory for memory in case.analysis.memory if _grows(case, memory)]
    if not growing:
        return None
    worst = max(growing, key=lambda memory: memory.growth_bytes_per_step or 0.0)
    growth = worst.growth_bytes_per_step or 0.0
    owners = _owners(case, worst)
    names = f", by {owners[0].name}" if owners and owners[0].name else ""
    advice = (
        "look for tensors that are kept with their graph: sum up `loss.item()` or `loss.detach()`, clear "
        "lists, bound caches"
    )
    return Cause(
        title=f"Memory of {worst.device} grows by {growth / 2**20:,.2f} MiB a step{names}",
        removal=None,
        share=None,
        evidence=(_slope(case, worst), *(_kept(owner) for owner in owners[:3])),
        remedies=(
            Remedy(
                {}, "memory stays level; the run does not end out of memory", f"{advice}{names}{_where(case, owners)}"
            ),
        ),
        severity="critical" if _fills(worst, growth) else "warning",
    )


def _grows(case: Case, memory: Memory) -> bool:
    """Return whether the level rises in nearly every step, beyond the uncertainty of its slope, and does not settle."""
    growth, interval, levels = memory.growth_bytes_per_step, memory.growth_interval, memory.step_levels
    if growth is None or growth < case.limits.growth_bytes or len(levels) <= case.limits.growing_steps:
        return False
    if interval is not None and interval[0] <= 0:
        return False
    rises = [after - before for before, after in itertools.pairwise(levels)]
    rising = sum(rise > 0 for rise in rises) / len(rises)
    half = len(rises) // 2
    settles = sum(rises[half:]) < 0.25 * sum(rises[:half])
    return rising >= case.limits.growth_share and not settles


def _owners(case: Case, memory: Memory) -> list[MemoryOwner]:
    """Return who keeps memory in most of the steps, the largest first."""
    steps = max(1, len(memory.step_levels) - 1)
    kept = [owner for owner in memory.owners if owner.kept_bytes and owner.kept_steps]
    kept = [owner for owner in kept if (owner.kept_steps or 0) >= case.limits.growth_share * steps]
    return sorted(kept, key=lambda owner: -(owner.kept_bytes or 0))


def _slope(case: Case, memory: Memory) -> Evidence:
    interval = memory.growth_interval
    sure = f" (95 % interval {interval[0]:,.0f} to {interval[1]:,.0f})" if interval else ""
    text = (
        f"{memory.device}: {memory.growth_bytes_per_step or 0:,.0f} bytes a step{sure} over "
        f"{len(memory.step_levels) - 1} steps"
    )
    return Evidence(text, memory.growth_bytes_per_step, "bytes a step", case.limits.growth_bytes)


def _kept(owner: MemoryOwner) -> Evidence:
    name = owner.name or "outside of operators"
    text = f"{name}: {owner.kept_bytes or 0:,} bytes allocated in {owner.kept_steps} steps are still held at the end"
    return Evidence(text, float(owner.kept_bytes or 0), "bytes")


def _where(case: Case, owners: list[MemoryOwner]) -> str:
    rows = [wait for repetition in (case.costs.repetitions if case.costs else ()) for wait in repetition.rows]
    return at(row for row in rows if owners and row.name == owners[0].name)


def _fills(memory: Memory, growth: float) -> bool:
    """Return whether ten thousand more steps would fill the device."""
    if memory.capacity_bytes is None or memory.peak_allocated_bytes is None:
        return False
    return memory.peak_allocated_bytes + 10_000 * growth > memory.capacity_bytes


RULE = Rule(
    code="memory-growth",
    needs="memory records (`profile_memory=True`) over more than `growing_steps` steps",
    speaks="the allocated level at the same point of each step rises by `growth_bytes` or more, in "
    "`growth_share` of the steps, "
    "with a slope surely above zero, and as fast in the second half as in the first",
    thresholds=("growing_steps", "growth_bytes", "growth_share"),
    examine=examine,
)
