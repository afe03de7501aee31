"""Operators on the CPU use fewer threads than there are cores."""

from __future__ import annotations

from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.threads import free_cores, parallel_us, threads


def examine(case: Case) -> Cause | None:
    """Return the cause where large operators of a CPU run could use more cores, and that could gain ``min_gain``."""
    used, cores = threads(case), free_cores(case)
    if case.has_gpu or used is None or cores is None or used > case.limits.threads_share * cores:
        return None
    work = parallel_us(case)
    gain = min(1.0, work * (1 - used / cores) / case.bounds.step_us) if case.bounds.step_us else 0.0
    if gain < case.limits.min_gain:
        return None
    return Cause(
        title=f"Operators use {used} of {cores} free cores: up to {percent(gain)} of the step",
        removal=None,
        share=case.share(work),
        gain=gain,
        evidence=(
            Evidence(
                f"threads of an operator: {used}; cores that no loading process needs: {cores}",
                used / cores,
                "share",
                case.limits.threads_share,
            ),
            Evidence(
                f"operators that can be divided among threads: {percent(case.share(work) or 0.0)} of the step",
                work,
                "µs a step",
            ),
        ),
        remedies=(Remedy({"threads": cores}, "large operators are divided among the free cores"),),
    )


RULE = Rule(
    code="few-threads",
    needs="a run on the CPU and its facts: `threads` and `cores`",
    speaks="the threads of an operator are at most `threads_share` of the cores that no loading process needs, and "
    "dividing the large operators among those could gain `min_gain`",
    remedies="`threads`: as many as there are free cores",
    thresholds=("threads_share", "min_gain"),
    examine=examine,
)
