"""Draw cases by seed: a healthy job, or one with a fault whose cost is known by simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tracelock.faults.families import Family
from tracelock.faults.healthy import HEALTHY, draw_healthy, is_healthy
from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.job import Job, World
from tracelock.faults.simulator.simulate import true_gain
from tracelock.faults.temptations import tempted

WORTH = 0.10  # a fault that costs less of the step is not graded: a main cause should be one
ATTEMPTS = 500
TIMED = 24


@dataclass(frozen=True)
class Drawn:
    """One case: the job, the same job without its fault, and what the fault truly costs (part of a step, 0..1)."""

    seed: int
    family: Family | None  # None: a healthy control
    job: Job
    healed: Job
    cost: float
    attempts: int

    @property
    def code(self) -> str:
        """Return the code of the finding that would be right."""
        return self.family.code if self.family else "no-bottleneck"

    @property
    def name(self) -> str:
        """Return the name of the fault, or ``healthy``."""
        return self.family.name if self.family else "healthy"


def draw_control(seed: int) -> Drawn:
    """Return a healthy control, most of them with habits that look like faults; every fourth one has several ranks.

    The habits together cost less than `HEALTHY`, and so does everything else that could be wrong.
    """
    random = seeded("healthy", seed)
    for attempt in range(1, ATTEMPTS):
        plain = draw_healthy(seed, attempt)
        if seed % 4 == 0:
            plain = replace(plain, world=World(ranks=random.choice((2, 4))))
        job = tempted(random, plain)
        if true_gain(job, plain) < HEALTHY and is_healthy(job) and _ranks_are_healthy(job):
            return Drawn(seed, None, job, plain, 0.0, attempt)
    raise RuntimeError(f"no healthy job in {ATTEMPTS} attempts for seed {seed}")


def draw_fault(family: Family, seed: int) -> Drawn:
    """Return a case of `family` whose fault costs `WORTH` of its step at least, and nothing else is wrong."""
    random = seeded(family.name, seed)
    for attempt in range(1, ATTEMPTS):
        pair = family.inject(random, draw_healthy(seed, attempt))
        if pair is None or not is_healthy(pair[1]) or not _ranks_are_healthy(pair[1]):
            continue
        cost = true_gain(*pair, timed=TIMED)
        if cost >= WORTH if family.costs else cost < HEALTHY:
            return Drawn(seed, family, *pair, cost, attempt)
    raise RuntimeError(f"no case of {family.name!r} in {ATTEMPTS} attempts for seed {seed}")


def _ranks_are_healthy(job: Job) -> bool:
    """Return whether the ranks of a job cost each other next to nothing."""
    return job.world.ranks == 1 or true_gain(job, replace(job, world=World())) < HEALTHY
