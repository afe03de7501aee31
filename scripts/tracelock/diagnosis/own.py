"""Gaps of the host that are the program's own, told from times in which another program had its core."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.analysis.costs import Pause
from tracelock.diagnosis.case import Case

NEARLY = 0.8  # of the gaps
EACH = 0.75  # of the steps: no disturbance comes back at one place in so many


def own_us(case: Case, pauses: Sequence[Pause]) -> float:
    """Return how long the program itself pauses, mean over the steps.

    Gaps that come back at the same place of a step are its own; those at changing places are as far as the run tells
    that no other program had the core meanwhile. Where it is not known how many come back, all are.
    """
    whole = sum(each.host_us for each in pauses)
    back = _returning_us(pauses)
    queued = case.queued_us
    roaming = 0.0 if queued is None else max(0.0, whole - back - queued)
    return min(whole, back + roaming)


def is_sure(case: Case, pauses: Sequence[Pause]) -> bool:
    """Return whether gaps may be called the program's with high confidence.

    By the run: other programs had its core for a small part of them, and the timed steps are long enough to hold them,
    too. Without it: nearly all of them come back at one place, in three of four steps.
    """
    whole, queued = sum(each.host_us for each in pauses), case.queued_us
    if not whole:
        return True
    if queued is not None:
        return queued <= (1 - NEARLY) * whole and _beyond_timed_us(case) <= whole / 2
    often = [each for each in pauses if each.steps >= EACH * case.steps]
    return _returning_us(often) >= NEARLY * whole


def roaming_us(case: Case) -> float:
    """Return how long nothing is recorded at changing places of the steps, mean: other programs, or Python."""
    pauses = case.costs.pauses if case.costs else ()
    return sum(each.host_us for each in pauses) - _returning_us(pauses)


def _returning_us(pauses: Sequence[Pause]) -> float:
    return sum(each.host_us if each.returning_us is None else each.returning_us for each in pauses)


def _beyond_timed_us(case: Case) -> float:
    """Return what a recorded step takes beyond a timed one; 0 where no run tells it."""
    overhead, step = case.overhead, case.step_us or 0.0
    return 0.0 if overhead is None or overhead <= 1 else step - step / overhead
