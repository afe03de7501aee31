"""Nothing wrong: said with the numbers that show it."""

from __future__ import annotations

from typing import Literal

from tracelock.analysis.model import Gpu
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.examined import not_examined, ruled_out
from tracelock.diagnosis.measures import confidence, each, per_step, percent
from tracelock.diagnosis.model import Evidence, Finding, Remedy
from tracelock.diagnosis.trust import withheld

CODE = "no-bottleneck"
MOSTLY = 0.5  # of the step: what is longer than all the rest is what bounds it
EARNED = 0.8  # of the step, in operators whose work is needed, makes high confidence
RECORD = (
    "record it so: torch.profiler.schedule(wait=1, warmup=1, active=6), and prof.step() at the end of each iteration"
)


def no_bottleneck(case: Case) -> Finding:
    """Return the finding of severity ``info`` that no rule found a cause, and the numbers that speak for it."""
    bound = all(_is_busy(case, gpu) for gpu in case.analysis.gpus)
    what = "the device works nearly all the time (compute-bound)" if bound and case.has_gpu else _what_is_left(case)
    return Finding(
        code=CODE,
        title=_title(case, what),
        severity="info",
        share_of_step=None,
        gain_at_most=None,
        confidence=_confidence(case, bound and case.has_gpu),
        evidence=() if withheld(case) else (*_evidence(case), _looked_for(case)),
        remedies=(Remedy({}, "causes can be told from start-up", RECORD),) if _is_unmarked(case) else (),
    )


def _title(case: Case, what: str) -> str:
    if (why := withheld(case)) is not None:
        return f"No verdict: {why}"
    if _is_unmarked(case):
        return f"Not judged: {what}; {RECORD}"
    return f"No bottleneck found: {what}"


def _is_unmarked(case: Case) -> bool:
    """Return whether the trace holds no complete step that it marks: then nothing of a step can be ruled out."""
    return withheld(case) is None and not case.steps


def _confidence(case: Case, busy: bool) -> Literal["low", "medium", "high"]:
    """Return how sure it is that nothing is wrong: a claim that has to be earned.

    High where a device works nearly all the time, or operators of the host do, and no cause of work that is not needed
    had to be left unexamined for want of what the trace does not hold.
    """
    earned = confidence(case)
    if earned != "high" or busy:
        return earned
    work, step = case.analysis.work, case.step_us
    if case.has_gpu or work is None or not step or work.double_us is None:
        return "medium"
    needed = work.operators_us - sum(each.host_us for each in work.copies) - sum(each.host_us for each in work.unused)
    return "high" if needed / step >= EARNED else "medium"


def _looked_for(case: Case) -> Evidence:
    """Return how many causes were ruled out, and what could not be looked for."""
    unseen = not_examined(case)
    count = len(ruled_out(case, frozenset()))
    missing = "; ".join(dict.fromkeys(each.why for each in unseen))
    return Evidence(f"{count} causes ruled out, {len(unseen)} not examined{f': {missing}' if missing else ''}", count)


def _is_busy(case: Case, gpu: Gpu) -> bool:
    window = _window_us(gpu)
    return window > 0 and gpu.busy_us / window >= case.limits.busy_device


def _window_us(gpu: Gpu) -> float:
    """Return the time that the share of a device is of: it may rest long before its first row and after its last."""
    return max(gpu.window_us or 0.0, gpu.span_us)


def _what_is_left(case: Case) -> str:
    breakdown, step = case.analysis.step.breakdown_us, case.step_us
    if breakdown is None or not step:
        return "the trace holds no steps to judge"
    if not case.has_steps:
        return "the trace marks no steps, so that its start cannot be told from training"
    if case.has_gpu:
        return f"kernels run {percent(breakdown.kernel / step)} of the step, and no single cause explains the rest"
    work = case.analysis.work  # not the breakdown, in which a label of the user's counts as an operator
    worked = (breakdown.cpu_op if work is None else work.operators_us) / step
    if worked >= MOSTLY:
        return f"operators work {percent(worked)} of the step (compute-bound on the CPU)"
    return f"operators work {percent(worked)} of the step, and no single cause explains the rest"


def _evidence(case: Case) -> list[Evidence]:
    evidence = []
    for gpu in case.analysis.gpus:
        if (window := _window_us(gpu)) > 0:
            busy = gpu.busy_us / window
            text = f"GPU {gpu.id} busy {per_step(gpu.busy_us)} of {per_step(window)}"
            evidence.append(Evidence(text, busy, "share", case.limits.busy_device))
            if gpu.communication_us > 0:
                evidence.append(_communication(gpu, window))
    breakdown = case.analysis.step.breakdown_us
    if breakdown is not None:
        collectives = () if case.has_gpu else ("communication",)  # a device's are kernels of it
        for part in ("kernel", *collectives, "dataloader", "cpu_op", "other"):
            time_us = getattr(breakdown, part)
            evidence.append(Evidence(f"{part}: {per_step(time_us)} {each(case)}", case.share(time_us), "share of step"))
    return evidence


def _communication(gpu: Gpu, window_us: float) -> Evidence:
    text = f"GPU {gpu.id} communicates {per_step(gpu.communication_us)}, {per_step(gpu.exposed_communication_us)} of it"
    return Evidence(f"{text} while it computes nothing", gpu.exposed_communication_us / window_us, "share")
