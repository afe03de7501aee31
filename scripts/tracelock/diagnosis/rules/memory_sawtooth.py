"""Many small allocations that are freed at once: memory goes up and down like a saw."""

from __future__ import annotations

from tracelock.analysis.sections import Memory
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where a step makes ``small_allocations`` that are freed at once."""
    toothed = [memory for memory in case.analysis.memory if _teeth(memory) >= case.limits.small_allocations]
    if not toothed:
        return None
    worst = max(toothed, key=_teeth)
    removal = _removal(case, worst)
    names = [owner.name for owner in sorted(worst.owners, key=lambda owner: -owner.allocations) if owner.name][:3]
    advice = (
        f"allocate once and write into it (`out=`, in-place operators), or do the work in one call: {', '.join(names)}"
    )
    return Cause(
        title=f"Memory of {worst.device} goes up and down like a saw: {_teeth(worst):,.0f} small allocations a "
        f"step freed at once",
        removal=removal,
        share=case.share(removal.host),
        evidence=(
            Evidence(
                f"{worst.device}: {_teeth(worst):,.0f} allocations a step are followed at once by a free",
                _teeth(worst),
                "a step",
                case.limits.small_allocations,
            ),
            *(Evidence(f"{owner.name}: {owner.allocations:,} allocations") for owner in worst.owners[:3] if owner.name),
        ),
        remedies=(Remedy({}, "fewer, larger allocations", advice),),
    )


def _removal(case: Case, memory: Memory) -> Removal:
    """Return the time of the operators that allocate so often themselves: no more than that is in the allocations."""
    steps = max(1, case.steps)
    often = {owner.name for owner in memory.owners if owner.allocations >= case.limits.repeated_calls * steps}
    rows = [row for row in case.analysis.operators if row.name in often]
    return Removal(
        device=sum(row.self_device_us or 0.0 for row in rows) / steps, host=sum(row.self_cpu_us for row in rows) / steps
    )


def _teeth(memory: Memory) -> float:
    sawtooth = memory.sawtooth
    return 0.0 if sawtooth is None else min(sawtooth.teeth_per_step, sawtooth.small_allocations_per_step)


RULE = Rule(
    code="memory-sawtooth",
    needs="memory records (`profile_memory=True`) and steps in the trace",
    speaks="a step makes `small_allocations` or more below 1 MiB that are followed at once by a free; what it "
    "costs is no more than the own time of the operators that allocate `repeated_calls` times a step",
    remedies="code: allocate once, or do the work in one call",
    thresholds=("small_allocations", "repeated_calls"),
    examine=examine,
    always=True,
)
