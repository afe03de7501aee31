"""How sure a finding is: what the recording allows, less what was seen to make verdicts wrong.

The points are fitted on simulated jobs with two faults; docs/measurements.md says on which seeds, and how often
verdicts of each level are right on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import confidence as allowed

Level: TypeAlias = Literal["low", "medium", "high"]
LEVELS: Final[tuple[Level, ...]] = ("low", "medium", "high")

CLEAR = 0.08  # expected gain of a finding that is clear of `min_gain`
APART = 0.04  # of the step: two expected gains closer than that may change places
# Python is slowed by the recording of its stacks: what it costs without them is known from a run's timed steps alone.
OF_PYTHON = ("dataloader-bound", "slow-collate", "step-gaps", "worker-startup")


def level(case: Case, code: str, estimate: float | None, others: Sequence[float | None], most: Level | None) -> Level:
    """Return the confidence of one finding.

    Parameters
    ----------
    estimate
        What its removal should bring, None where it costs no time.
    others
        The expected gains of the other findings.
    most
        The highest level that its rule allows itself, None without a limit.
    """
    points = LEVELS.index(allowed(case))
    points -= _doubts(case, code, estimate, others)
    if most is not None:
        points = min(points, LEVELS.index(most))
    return LEVELS[max(0, points)]


def _doubts(case: Case, code: str, estimate: float | None, others: Sequence[float | None]) -> int:
    """Return by how many levels a finding is less sure than its recording."""
    if estimate is None:
        return 0
    near = any(other is not None and abs(other - estimate) < APART for other in others)
    slowed = has_stacks(case) and case.overhead is None and code in OF_PYTHON and not case.has_gpu
    return int(estimate < CLEAR) + int(near) + int(slowed)


def has_stacks(case: Case) -> bool:
    """Return whether the profiler recorded stacks."""
    return bool(case.analysis.operators_by_stack)
