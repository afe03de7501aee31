"""Between or inside steps nothing that trains happens: logging, checkpoints, validation, sleep."""

from __future__ import annotations

from tracelock.analysis.costs import TraceRow
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, lines, of_step, per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

ADVICE = (
    "do it less often, or beside the training: save from a copy in a thread, log every hundredth step, "
    "validate once an epoch"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where long pauses, or what long steps take beyond the others, reach ``pause_share``."""
    costs = case.costs
    if costs is None:
        return None
    paused = sum(pause.host_us for pause in costs.pauses)
    beyond = _beyond(case)
    removal = _removal(case, paused, beyond)
    if paused or beyond:
        removal += Removal(device=_read_back_us(case))
    gain = case.gain(removal)
    if gain < case.limits.pause_share:
        return None
    rows = [row for pause in costs.pauses for row in pause.rows]
    return Cause(
        title=f"{percent(gain)} of the time of the steps goes into pauses of the training{_named(rows)}",
        removal=removal,
        share=case.share(max(paused, beyond)),
        evidence=tuple(_evidence(case, beyond)),
        remedies=(Remedy({}, "all steps take as long as the shortest ones", f"{ADVICE}{at(rows)}"),),
    )


def _beyond(case: Case) -> float:
    """Return what long steps take beyond the median step, waiting for data left out, where they do more; µs a step."""
    excess = case.costs.excess if case.costs else None
    if excess is None or (excess.work or 0.0) < case.limits.extra_work:
        return 0.0
    return max(0.0, excess.excess_us - excess.loading_us)


def _read_back_us(case: Case) -> float:
    """Return the device's time a step in copies to the host that no kernel hides: what a checkpoint reads back."""
    copies = case.costs.copies if case.costs else ()
    return sum(each.exposed_us for each in copies if each.kind == "DtoH")


def _removal(case: Case, paused: float, beyond: float) -> Removal:
    """Return what the pauses take: idle time of both sides, or in long steps also work of the device (validation)."""
    if beyond <= paused or not case.has_gpu:
        return Removal(host=max(paused, beyond))
    return Removal(host=beyond, device=max(0.0, beyond - case.bounds.idle_us))


def _named(rows: list[TraceRow]) -> str:
    found = lines(rows)
    return f" ({found})" if found else ""


def _evidence(case: Case, beyond: float) -> list[Evidence]:
    costs = case.costs
    found = []
    for pause in costs.pauses[:3] if costs else ():
        what = f"nothing recorded, in {pause.steps} steps{f', inside {pause.code}' if pause.code else ''}"
        found.append(of_step(case, what, pause.host_us, pause.rows))
    if costs and costs.excess and beyond:
        text = (
            f"{costs.excess.steps} of {case.steps} steps are long: beyond a usual step they take "
            f"{per_step(beyond)} a step"
        )
        found.append(Evidence(text, case.share(beyond), "share of step", case.limits.pause_share, costs.excess.rows))
    return found


RULE = Rule(
    code="step-gaps",
    needs="steps in the trace",
    speaks="stretches of half a millisecond and more with no operator, runtime call, loading or device work, or "
    "what steps longer "
    "than 1.25 usual steps (the lower quartile) that call `extra_work` times the operators take beyond it "
    "(waiting for data left out), reach `pause_share` of the step",
    remedies="code: less often, or beside the training, at the user's line",
    thresholds=("pause_share", "extra_work"),
    examine=examine,
)
