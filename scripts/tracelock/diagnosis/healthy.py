"""Nothing wrong: said with the numbers that show it."""

from __future__ import annotations

from tracelock.analysis.model import Gpu
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import confidence, per_step, percent
from tracelock.diagnosis.model import Evidence, Finding
from tracelock.diagnosis.trust import withheld

CODE = "no-bottleneck"
MOSTLY = 0.5  # of the step: what is longer than all the rest is what bounds it


def no_bottleneck(case: Case) -> Finding:
    """Return the finding of severity ``info`` that no rule found a cause, and the numbers that speak for it."""
    bound = all(_is_busy(case, gpu) for gpu in case.analysis.gpus)
    what = "the device works nearly all the time (compute-bound)" if bound and case.has_gpu else _what_is_left(case)
    return Finding(
        code=CODE,
        title=f"No verdict: {why}" if (why := withheld(case)) else f"No bottleneck found: {what}",
        severity="info",
        share_of_step=None,
        gain_at_most=None,
        confidence=confidence(case),
        evidence=() if withheld(case) else tuple(_evidence(case)),
        remedies=(),
    )


def _is_busy(case: Case, gpu: Gpu) -> bool:
    return gpu.span_us > 0 and gpu.busy_us / gpu.span_us >= case.limits.busy_device


def _what_is_left(case: Case) -> str:
    breakdown, step = case.analysis.step.breakdown_us, case.step_us
    if breakdown is None or not step:
        return "the trace holds no steps to judge"
    if not case.has_steps:
        return "the trace marks no steps, so that its start cannot be told from training"
    if case.has_gpu:
        return f"kernels run {percent(breakdown.kernel / step)} of the step, and no single cause explains the rest"
    worked = breakdown.cpu_op / step
    if worked >= MOSTLY:
        return f"operators work {percent(worked)} of the step (compute-bound on the CPU)"
    return f"operators work {percent(worked)} of the step, and no single cause explains the rest"


def _evidence(case: Case) -> list[Evidence]:
    evidence = []
    for gpu in case.analysis.gpus:
        if gpu.span_us > 0:
            busy = gpu.busy_us / gpu.span_us
            text = f"GPU {gpu.id} busy {per_step(gpu.busy_us)} of {per_step(gpu.span_us)}"
            evidence.append(Evidence(text, busy, "share", case.limits.busy_device))
    breakdown = case.analysis.step.breakdown_us
    if breakdown is not None:
        for part in ("kernel", "communication", "dataloader", "cpu_op", "other"):
            time_us = getattr(breakdown, part)
            evidence.append(Evidence(f"{part}: {per_step(time_us)} a step", case.share(time_us), "share of step"))
    return evidence
