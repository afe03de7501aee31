"""More threads and workers than cores: they take turns."""

from __future__ import annotations

from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.threads import threads


def examine(case: Case) -> Cause | None:
    """Return the cause where a run on the CPU uses more threads an operator than it has cores."""
    used, cores = threads(case), case.cores
    if case.has_gpu or used is None or cores is None or used <= cores or not case.bounds.step_us:
        return None
    work = case.costs.operators_us if case.costs else 0.0
    gain = min(1.0, work * (1 - cores / used) / case.bounds.step_us)
    if gain < case.limits.min_gain:
        return None
    return Cause(
        title=f"{used} threads share {cores} cores: up to {percent(gain)} of the step",
        removal=None,
        share=case.share(work),
        gain=gain,
        evidence=(
            Evidence(f"{used} threads an operator, {cores} cores", used / cores, "threads a core", 1.0),
            Evidence(f"operators take {percent(case.share(work) or 0.0)} of the step", work, "µs a step"),
        ),
        remedies=(Remedy({"threads": cores}, "threads no longer wait for each other's turn"),),
    )


RULE = Rule(
    code="oversubscription",
    needs="a run on the CPU and its facts: `threads` and `cores`",
    speaks="an operator has more threads than there are cores, and operators take so much of the step that their "
    "turns could "
    "cost `min_gain`",
    remedies="`threads`: as many as there are cores",
    thresholds=("min_gain",),
    examine=examine,
)
