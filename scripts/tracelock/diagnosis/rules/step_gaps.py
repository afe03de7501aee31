"""Between or inside steps nothing that trains happens: logging, checkpoints, validation, sleep."""

from __future__ import annotations

from dataclasses import dataclass

from tracelock.analysis.costs import Pause, TraceRow
from tracelock.diagnosis import loading, own, recurring
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, lines, of_step, per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

LESS_OFTEN = "do it less often, or beside the training: save from a copy in a thread, log every hundredth step"
VALIDATES = "validate once an epoch, or on a part of the data"
UNKNOWN = (
    "what the program did there is not recorded: record again with stacks (`with_stack=True`), or look at it with "
    "py-spy while it runs"
)


@dataclass(frozen=True)
class _Pauses:
    """What is paused, mean over the steps; µs."""

    pauses: tuple[Pause, ...]
    paused: float  # nothing recorded
    beyond: float  # what long steps take beyond the others while they do more
    most: float  # times as much at most in other steps
    likely: float  # the larger of both without the step that has most of it, where only few have any
    sure: bool = True  # that they are the program's, and no other program had its core


def examine(case: Case) -> Cause | None:
    """Return the cause where long pauses, or what long steps take beyond the others, reach ``pause_share``."""
    if case.costs is None:
        return None
    found = _found(case)
    removal = _removal(case, found.paused * found.most, found.beyond * found.most)
    read_back = Removal(device=_read_back_us(case) if found.paused or found.beyond else 0.0)
    gain = case.gain(removal + read_back)
    if gain < case.limits.pause_share or not found.likely:
        return None
    rows = [row for pause in found.pauses for row in pause.rows]
    return Cause(
        title=_title(case, found, gain, rows),
        removal=removal + read_back,
        likely=_removal(case, min(found.paused, found.likely), min(found.beyond, found.likely)) + read_back,
        share=case.share(max(found.paused, found.beyond)),
        evidence=tuple(_evidence(case, found)),
        remedies=(_remedy(case, found, rows),),
        confidence=None if found.sure or found.beyond > found.paused else "medium",
    )


def _found(case: Case) -> _Pauses:
    """Return the pauses that recur, without those that are the start of worker processes."""
    starts = loading.start_pauses(case)
    pauses = tuple(each for each in (case.costs.pauses if case.costs else ()) if each not in starts)
    kept = tuple(each for each in pauses if recurring.is_recurring(case, each.steps, each.host_us))
    beyond, without_worst = _beyond(case)
    paused = sum(each.host_us for each in kept)
    likely = sum(recurring.likely_us(case, each.steps, each.host_us, each.without_worst_us) for each in kept)
    if not case.has_gpu:
        likely = min(likely, own.own_us(case, kept))
    most = _most(case, max((each.steps for each in kept), default=0), longer=beyond > 0)
    return _Pauses(kept, paused, beyond, most, max(likely, without_worst), case.has_gpu or own.is_sure(case, kept))


def _most(case: Case, paused_steps: int, *, longer: bool) -> float:
    """Return how many times as much other steps may show: half a pause more, unless every step has one."""
    excess = case.costs.excess if case.costs and longer else None
    shown = max(1, paused_steps, excess.steps if excess else 0)
    return 1.0 if shown >= case.steps else 1 + 0.5 / shown


def _beyond(case: Case) -> tuple[float, float]:
    """Return what long steps take beyond a usual one, waiting for data left out, where they do more; µs a step.

    And the same without the worst of them.
    """
    excess = case.costs.excess if case.costs else None
    if excess is None or (excess.work or 0.0) < case.limits.extra_work:
        return 0.0, 0.0
    beyond = max(0.0, excess.excess_us - excess.loading_us)
    if not recurring.is_recurring(case, excess.steps, beyond):
        return 0.0, 0.0
    return beyond, recurring.likely_us(case, excess.steps, beyond, excess.without_worst_us)


def _read_back_us(case: Case) -> float:
    """Return the device's time a step in copies to the host that no kernel hides: what a checkpoint reads back."""
    copies = case.costs.copies if case.costs else ()
    return sum(each.exposed_us for each in copies if each.kind == "DtoH")


def _removal(case: Case, paused: float, beyond: float) -> Removal:
    """Return what the pauses take: idle time of both sides, or in long steps also work of the device (validation)."""
    if beyond <= paused or not case.has_gpu:
        return Removal(host=max(paused, beyond))
    return Removal(host=beyond, device=max(0.0, beyond - case.bounds.idle_us), most=beyond)


def _title(case: Case, found: _Pauses, gain: float, rows: list[TraceRow]) -> str:
    named = lines(rows)
    where = f" ({named})" if named else ""
    if not named and found.beyond <= found.paused:
        return f"Nothing is recorded for {percent(gain)} of the time of the steps{_how_often(case, found)}"
    return f"{percent(gain)} of the time of the steps goes into pauses of the training{where}"


def _how_often(case: Case, found: _Pauses) -> str:
    most = max((pause.steps for pause in found.pauses), default=0)
    return ", in every step" if most >= case.steps else f", in {most} of {case.steps} steps"


def _remedy(case: Case, found: _Pauses, rows: list[TraceRow]) -> Remedy:
    """Return advice that the trace bears out: a line of the user's, extra work, values that are read back; or none."""
    every = max((pause.steps for pause in found.pauses), default=0) >= case.steps
    expect = "each step loses its gap" if every else "all steps take as long as the shortest ones"
    if found.beyond > found.paused:
        return Remedy({}, expect, f"{LESS_OFTEN}; {VALIDATES}{at(rows)}")
    if lines(rows):
        return Remedy({}, expect, f"{LESS_OFTEN}{at(rows)}")
    return Remedy({}, expect, UNKNOWN)


def _evidence(case: Case, found: _Pauses) -> list[Evidence]:
    evidence, costs = [], case.costs
    for pause in found.pauses[:3]:
        what = f"nothing recorded, in {pause.steps} of {case.steps} steps"
        evidence.append(
            of_step(case, f"{what}{f', inside {pause.code}' if pause.code else ''}", pause.host_us, pause.rows)
        )
    if costs and costs.excess and found.beyond:
        text = (
            f"{costs.excess.steps} of {case.steps} steps are long: beyond a usual step they take "
            f"{per_step(found.beyond)} a step"
        )
        limit = case.limits.pause_share
        evidence.append(Evidence(text, case.share(found.beyond), "share of step", limit, costs.excess.rows))
    return evidence


RULE = Rule(
    code="step-gaps",
    needs="steps in the trace",
    speaks="stretches of half a millisecond and more with no operator, runtime call, loading or device work, or "
    "what steps longer than 1.25 usual steps (the lower quartile) that call `extra_work` times the operators take "
    "beyond it (waiting for data left out), reach `pause_share` of the step; what one step alone of `confident_steps` "
    "or more shows is a disturbance, unless the run's timed steps show it, too; without a device, so are stretches at "
    "changing places of the step, as far as the run does not tell that no other program had the core",
    remedies="code: less often, or beside the training, at the user's line; where none is recorded, how to record it",
    thresholds=("pause_share", "extra_work", "confident_steps"),
    examine=examine,
    stacks=True,
)
