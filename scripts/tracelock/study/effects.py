"""What each factor does over the whole grid, and which factors do more or less together than each alone.

Pairs of variants that differ in one factor alone are compared, so that a factor is judged in every context that was
measured; ratios are of medians, and are averaged as logarithms (geometric means). Contexts are not repeats: what is
shown beside a mean is the least and the largest ratio of a context, not an interval of uncertainty.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tracelock.study.comparison import Case, Comparison


@dataclass(frozen=True)
class Effect:
    """A value of a factor against its reference value, all else equal."""

    factor: str
    value: Any
    reference: Any  # the baseline's value, else the first one
    ratio: float  # of times, geometric mean over the contexts: below 1 is less time
    least: float
    most: float
    contexts: int


@dataclass(frozen=True)
class Interaction:
    """Two factors at once, against what their effects one by one would give together."""

    factors: tuple[str, str]
    values: tuple[Any, Any]
    references: tuple[Any, Any]
    together: float  # ratio of both changed
    expected: float  # product of the ratios of each changed alone
    contexts: int
    alone: tuple[float, float]  # ratio of each changed alone

    @property
    def factor(self) -> float:
        """How much more time (above 1) or less it takes than each change alone would make one expect."""
        return self.together / self.expected


def metric(comparison: Comparison) -> str:
    """Return what is compared: the time per sample where every case that ran knows it, else the step time."""
    ran = [case for case in comparison.cases if case.step]
    return "time per sample" if ran and all(case.sample for case in ran) else "step time"


def case_time(case: Case, of: str) -> float | None:
    """Return the median that is compared, microseconds; None for a case without runs."""
    found = case.sample if of == "time per sample" else case.step
    return found.value if found and found.value > 0 else None


def main_effects(comparison: Comparison, environment: str) -> tuple[Effect, ...]:
    """Return the effect of each value of each factor, the strongest factor first."""
    times = _times(comparison, environment)
    found: list[list[Effect]] = []
    for factor in comparison.factors:
        reference, others = _values(comparison, factor)
        effects = [_effect(times, comparison.factors, (factor, value, reference)) for value in others]
        found.append([each for each in effects if each])
    found.sort(key=lambda effects: -max((abs(math.log(each.ratio)) for each in effects), default=0.0))
    return tuple(itertools.chain.from_iterable(found))


def interactions(comparison: Comparison, environment: str) -> tuple[Interaction, ...]:
    """Return pairs of values that were measured with and without each other, the strongest interaction first."""
    times = _times(comparison, environment)
    found = []
    for first, second in itertools.combinations(comparison.factors, 2):
        for value, other in itertools.product(_values(comparison, first)[1], _values(comparison, second)[1]):
            each = _interaction(times, comparison, ((first, value), (second, other)))
            found += [each] if each else []
    return tuple(sorted(found, key=lambda each: -abs(math.log(each.factor))))


Times = dict[str, tuple[dict[str, Any], float]]


def _times(comparison: Comparison, environment: str) -> Times:
    of = metric(comparison)
    timed = [(case, case_time(case, of)) for case in comparison.cases if case.environment == environment]
    return {_key(case.factors, comparison.factors): (case.factors, time) for case, time in timed if time is not None}


def _key(factors: dict[str, Any], names: Iterable[str]) -> str:
    return json.dumps([factors.get(name) for name in names], sort_keys=True, default=str)


def _values(comparison: Comparison, factor: str) -> tuple[Any, list[Any]]:
    """Return the value of reference of a factor, and the others in order of the study."""
    distinct = {
        json.dumps(case.factors.get(factor), default=str): case.factors.get(factor) for case in comparison.cases
    }
    base = next((case.factors.get(factor) for case in comparison.cases if case.baseline), None)
    reference = json.dumps(base, default=str) if json.dumps(base, default=str) in distinct else next(iter(distinct))
    return distinct[reference], [value for text, value in distinct.items() if text != reference]


def _effect(times: Times, names: Sequence[str], what: tuple[str, Any, Any]) -> Effect | None:
    factor, value, reference = what
    ratios = []
    for factors, time in times.values():
        if factors.get(factor) == reference and (other := times.get(_key({**factors, factor: value}, names))):
            ratios.append(other[1] / time)
    if not ratios:
        return None
    return Effect(factor, value, reference, _mean(ratios), min(ratios), max(ratios), len(ratios))


def _interaction(times: Times, comparison: Comparison, what: Sequence[tuple[str, Any]]) -> Interaction | None:
    (first, value), (second, other) = what
    references = _values(comparison, first)[0], _values(comparison, second)[0]
    together, alone = [], []
    for factors, time in times.values():
        if (factors.get(first), factors.get(second)) != references:
            continue
        changes: tuple[dict[str, Any], ...] = ({first: value}, {second: other}, {first: value, second: other})
        found = [times.get(_key({**factors, **change}, comparison.factors)) for change in changes]
        if all(found):
            one, beside, both = (each[1] / time for each in found if each)
            together.append(both)
            alone.append((one, beside))
    if not together:
        return None
    means = _mean([one for one, _ in alone]), _mean([beside for _, beside in alone])
    both = _mean(together)
    return Interaction((first, second), (value, other), references, both, means[0] * means[1], len(together), means)


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
