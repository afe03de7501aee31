"""Whether something recurs, or happened once: one disturbance of the machine is no cause."""

from __future__ import annotations

from statistics import median

from tracelock.diagnosis.case import Case

FEW = 3  # steps: what more of them show is no accident of the worst
LONG = 0.5  # of what the recorded step had on top: a timed step longer by that shows the same


def is_recurring(case: Case, steps: int, mean_us: float) -> bool:
    """Return whether something is a cause that recurs: more than one step shows it, or the timed steps do, too.

    Parameters
    ----------
    steps
        How many of the recorded steps show it.
    mean_us
        What it costs, mean over the recorded steps.
    """
    if steps != 1 or case.steps < case.limits.confident_steps:
        return True
    return _timed(case, mean_us * case.steps) > 1


def likely_us(case: Case, steps: int, mean_us: float, without_worst_us: float | None) -> float:
    """Return the mean over the steps that may be expected: without the worst, where a few steps decide it."""
    if steps == 1 and case.steps >= case.limits.confident_steps:
        timed = case.timed("step_us")
        return _timed(case, mean_us * case.steps) / len(timed) * mean_us * case.steps if timed else 0.0
    if without_worst_us is None or steps > FEW or case.steps < case.limits.confident_steps:
        return mean_us
    # Two of eight steps without one of them are one of seven: scaled back to as many as there were.
    return min(mean_us, without_worst_us * steps / max(1, steps - 1) * (case.steps - 1) / case.steps)


def _timed(case: Case, once_us: float) -> int:
    """Return how many of the run's timed steps are longer than the usual one by about `once_us`."""
    timed = case.timed("step_us")
    return sum(step > median(timed) + LONG * once_us for step in timed) if timed else 0
