"""Memory is kept from step to step: a leak, unlike the growth at a start that ends."""

from __future__ import annotations

import itertools
from statistics import median

from tracelock.analysis.sections import Memory, MemoryOwner
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import at
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

SETTLING = 0.25  # growth whose second half is less than a quarter of its first comes to an end


def examine(case: Case) -> Cause | None:
    """Return the cause where a device's memory grows by ``growth_bytes`` a step, surely and to the end."""
    growing = [memory for memory in case.analysis.memory if _grows(case, memory)]
    if not growing:
        return None
    worst = max(growing, key=_growth)
    growth = _growth(worst)
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


def _rises(memory: Memory) -> list[int]:
    """Return how much the level rose in each step but the first, in which buffers are made that stay."""
    return [after - before for before, after in itertools.pairwise(memory.step_levels[1:])]


def _growth(memory: Memory) -> float:
    """Return the bytes by which a usual step raises the level."""
    rises = _rises(memory)
    return float(median(rises)) if rises else 0.0


def _grows(case: Case, memory: Memory) -> bool:
    """Return whether the level rises in nearly every step, by enough, and does not settle."""
    rises = _rises(memory)
    if len(rises) < case.limits.growing_steps or _growth(memory) < case.limits.growth_bytes:
        return False
    half = len(rises) // 2
    settles = sum(rises[half:]) < SETTLING * sum(rises[:half])
    return sum(rise > 0 for rise in rises) / len(rises) >= case.limits.growth_share and not settles


def _owners(case: Case, memory: Memory) -> list[MemoryOwner]:
    """Return who keeps memory in most of the steps, the largest first."""
    steps = max(1, len(memory.step_levels) - 1)
    kept = [owner for owner in memory.owners if owner.kept_bytes and owner.kept_steps]
    kept = [owner for owner in kept if (owner.kept_steps or 0) >= case.limits.growth_share * steps]
    return sorted(kept, key=lambda owner: -(owner.kept_bytes or 0))


def _slope(case: Case, memory: Memory) -> Evidence:
    levels = ", ".join(f"{level / 2**20:,.2f}" for level in memory.step_levels[:8])
    text = f"{memory.device}: {_growth(memory):,.0f} bytes a step; level at the steps in MiB: {levels}"
    return Evidence(text, _growth(memory), "bytes a step", case.limits.growth_bytes)


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
    speaks="the allocated level at the same point of each step rises by `growth_bytes` or more in the median, in "
    "`growth_share` of `growing_steps` or more steps after the first, and in the second half as in the first",
    remedies="code: let go of what is kept, named by the operator that allocated it",
    thresholds=("growing_steps", "growth_bytes", "growth_share"),
    examine=examine,
    stacks=True,
)
