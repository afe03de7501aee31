"""Two faults in one job: which can occur together, and what each truly costs, by switching each off."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from random import Random
from typing import Any, TypeAlias

from tracelock.faults.draw import TIMED, WORTH
from tracelock.faults.families import FAMILIES, Family
from tracelock.faults.healthy import HEALTHY, draw_healthy
from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.simulate import sample_ns

SECOND = 0.07  # what the smaller fault costs at least: `min_gain`, and what eight recorded steps differ by
LAYERS = 40  # networks with more take long to simulate six times
LEFT = 0.03  # what the smaller fault costs at least when the larger is gone, of the step with both
ATTEMPTS = 16  # jobs: a pair of which none fits is left out
QUICK = 6  # steps, to see whether a case is worth being simulated in full
# Two names of one thing: how unevenly the ranks come.
EXCLUDED = (
    *({"slow-device", code} for code in ("rank-imbalance", "communication-exposed")),
    *({"straggling-rank", code} for code in ("rank-imbalance", "communication-exposed", "slow-device", "late-host")),
)

Change: TypeAlias = dict[str, Any]  # fields of a job's parts, by "part.field", with their values


@dataclass(frozen=True)
class DrawnPair:
    """One case: a job with two faults, the same job without either, and what each costs beside the other."""

    seed: int
    families: tuple[Family, Family]
    job: Job
    without: tuple[Job, Job]  # without the first, without the second fault
    costs: tuple[float, float]  # part of a step that switching the fault off saves, the other left in place, 0..1
    together: float  # that of switching both off

    @property
    def name(self) -> str:
        """Return both names."""
        return " + ".join(family.name for family in self.families)


def pairs() -> Iterator[tuple[Family, Family]]:
    """Yield the pairs of families that can occur together and have names of their own."""
    for first, second in itertools.combinations(FAMILIES, 2):
        codes = {first.code, second.code}
        if len(codes) == 2 and codes not in EXCLUDED and (first.costs or second.costs):
            yield first, second


def draw_pair(families: tuple[Family, Family], seed: int) -> DrawnPair | None:
    """Return a case of both faults, None where none was found: they do not fit into one job, or one hides the other."""
    random = seeded("pair", families[0].name, families[1].name, seed)
    for attempt in range(1, ATTEMPTS):
        healthy = draw_healthy(seed, attempt)
        both = None if len(healthy.network.layers) > LAYERS else _both(random, families, healthy)
        if both is None:
            continue
        if _worthwhile(seed, families, both, QUICK):
            drawn = _worthwhile(seed, families, both, TIMED)
            if drawn is not None:
                return drawn
    return None


def switched_off(
    seed: int, families: tuple[Family, Family], job: Job, first: Job, second: Job, timed: int = TIMED
) -> DrawnPair:
    """Return the case of a job with two faults, `first` and `second` being the same job without the one of that place.

    Parameters
    ----------
    timed
        Steps of which the costs are taken.
    """
    both, healed = sample_ns(job, timed), _healthy(job, first, second)
    costs = (1 - sample_ns(first, timed) / both, 1 - sample_ns(second, timed) / both)
    return DrawnPair(seed, families, job, (first, second), costs, 1 - sample_ns(healed, timed) / both)


def _worthwhile(
    seed: int, families: tuple[Family, Family], both: tuple[Job, tuple[Job, Job]], timed: int
) -> DrawnPair | None:
    """Return the case with its costs, None where a fault costs too little, as soon as one does: most jobs are no case.

    A fault that costs nothing once the other is gone is a symptom of that. What costs no time costs none.
    """
    job, without = both
    whole, costs = sample_ns(job, timed), []
    for family, healed in zip(families, without, strict=True):
        costs.append(1 - sample_ns(healed, timed) / whole)
        if costs[-1] < SECOND if family.costs else costs[-1] >= HEALTHY:
            return None
    if max(costs) < WORTH:
        return None
    together = 1 - sample_ns(_healthy(job, *without), timed) / whole
    if together - max(costs) < LEFT and all(family.costs for family in families):
        return None
    return DrawnPair(seed, families, job, without, (costs[0], costs[1]), together)


def _healthy(job: Job, first: Job, second: Job) -> Job:
    """Return the job without either fault."""
    return _changed(first, _difference(job, second))


def _both(random: Random, families: tuple[Family, Family], job: Job) -> tuple[Job, tuple[Job, Job]] | None:
    """Return the job with both faults and without each; None where they change the same thing."""
    one = families[0].inject(random, job)
    two = None if one is None else families[1].inject(random, one[0])
    if one is None or two is None:
        return None
    return put_together(one, two)


def put_together(one: tuple[Job, Job], two: tuple[Job, Job]) -> tuple[Job, tuple[Job, Job]] | None:
    """Return the job with both faults and without each, or None where both change the same thing.

    Parameters
    ----------
    one
        A job with the first fault, and without it.
    two
        That job with the second fault besides, and without that.
    """
    first, second = _difference(*one), _difference(*two)
    if not first or not second or set(first) & set(second) or _value(two[0], first) != _value(one[0], first):
        return None
    return two[0], (_changed(two[0], first), _changed(two[0], second))


def _difference(faulty: Job, healed: Job) -> Change:
    """Return the fields in which the jobs differ, with the healed values."""
    return {key: value for key, value in _leaves(healed).items() if _leaves(faulty)[key] != value}


def _value(job: Job, keys: Mapping[str, Any]) -> Change:
    known = _leaves(job)
    return {key: known[key] for key in keys}


def _leaves(job: Job) -> Change:
    found: Change = {}
    for part in fields(job):
        value = getattr(job, part.name)
        if is_dataclass(value):
            found |= {f"{part.name}.{leaf.name}": getattr(value, leaf.name) for leaf in fields(value)}
        else:
            found[part.name] = value
    return found


def _changed(job: Job, change: Change) -> Job:
    """Return the job with some fields changed."""
    for key, value in change.items():
        part, dot, name = key.partition(".")
        job = replace(job, **{part: replace(getattr(job, part), **{name: value}) if dot else value})
    return job
