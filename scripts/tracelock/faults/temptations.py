"""Habits that look like faults and cost next to nothing: what a tool that always finds something would name."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.simulate import simulate

Tempt: TypeAlias = Callable[[Random, Job], Job]


def reads_values(random: Random, job: Job) -> Job:
    """Wait for the device in the middle of the step, while the host is ahead."""
    return job.with_habits(sync=random.choice(("item", "cpu", "synchronize")), sync_times=random.randint(1, 4))


def loops(random: Random, job: Job) -> Job:
    """Call a small operator in a loop, while the host is ahead."""
    return job.with_habits(repeated=random.randint(50, 200))


def logs(random: Random, job: Job) -> Job:
    """Write a line now and then."""
    every = random.choice((4, 8))
    part = random.uniform(0.005, 0.02)
    return job.with_habits(pause="logging", pause_every=every, pause_us=every * part * simulate(job, 4).step_ns / 1000)


def copies_plainly(random: Random, job: Job) -> Job:
    """Copy small batches from pageable memory and wait for them."""
    return job.with_settings({"pin_memory": False, "non_blocking": random.random() < 0.5})


def updates_one_by_one(_: Random, job: Job) -> Job:
    """Update parameters one by one where that takes no time worth a word."""
    return job.with_settings({"optimizer_foreach": False, "optimizer_fused": False})


def lets_workers_end(_: Random, job: Job) -> Job:
    """Start workers anew in each epoch, of which a run sees only one."""
    return job.with_settings({"persistent_workers": False})


def has_an_own_operator(random: Random, job: Job) -> Job:
    """Use an operator of one's own that takes a small part of the step."""
    part = random.uniform(0.01, 0.025)
    return job.with_habits(slow_sample_us=part * simulate(job, 4).step_ns / 1000 / job.settings.batch_size)


TEMPTATIONS: tuple[Tempt, ...] = (
    reads_values,
    loops,
    logs,
    copies_plainly,
    updates_one_by_one,
    lets_workers_end,
    has_an_own_operator,
)


def tempted(random: Random, job: Job) -> Job:
    """Return the job with up to three of these habits."""
    for tempt in random.sample(TEMPTATIONS, random.randint(0, 3)):
        job = tempt(random, job)
    return job
