"""Healthy jobs: tuned settings, a loader that keeps up, a host that is ahead of its device; proved by simulation."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from random import Random
from typing import Literal

from tracelock.faults.simulator import machine, network
from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.job import Data, Habits, Job, Settings, World
from tracelock.faults.simulator.machine import Machine
from tracelock.faults.simulator.network import Network
from tracelock.faults.simulator.simulate import sample_ns, simulate

HEALTHY = 0.03  # nothing that could be wrong costs more than this part of the step
LARGEST_STEP_US = 400_000.0


@functools.lru_cache(maxsize=512)
def draw_healthy(seed: int, number: int) -> Job:
    """Return the `number`-th healthy job of a seed: random machine, network, settings and harmless habits."""
    random = seeded("job", seed, number)
    while True:
        job = _draw(random, seed)
        if job is not None and is_healthy(job):
            return job


def _draw(random: Random, seed: int) -> Job | None:
    drawn, model = machine.draw(random), network.draw(random)
    optimizer: Literal["SGD", "Adam"] = random.choice(("SGD", "Adam"))
    job = Job(
        drawn, model, _settings(random, drawn, model), _data(random), _habits(random), World(), optimizer, 1.0, seed
    )
    sized = _with_batch(random, job)
    return None if sized is None else with_enough_workers(sized)


def _settings(random: Random, drawn: Machine, model: Network) -> Settings:
    """Return settings that use the tensor cores: the only way on Volta is half precision."""
    half = drawn.capability[0] < 8 or random.random() < 0.5
    amp = ("fp16" if drawn.capability[0] < 8 else random.choice(("bf16", "fp16"))) if half else "off"
    return Settings(amp=amp, optimizer_fused=random.random() < 0.3, prefetch_factor=random.choice((2, 4)))


def _data(random: Random) -> Data:
    return Data(sample_us=math.exp(random.uniform(math.log(3), math.log(1500))), spread=random.uniform(0.02, 0.3))


def _habits(random: Random) -> Habits:
    """Return habits that cost next to nothing: a value read at the end of the step, the next batch copied ahead."""
    return Habits(
        logs_item=random.random() < 0.6, prefetches=random.random() < 0.3, teeth=random.choice((0, 0, 20, 60))
    )


def _with_batch(random: Random, job: Job) -> Job | None:
    """Return the job with a batch that keeps the device 1.4 to 5 times as long as the host launches, or None."""
    wanted = random.uniform(1.4, 5.0)
    host = simulate(job.with_settings({"batch_size": 1}), timed=2).step_ns
    for batch in (8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        sized = job.with_settings({"batch_size": batch})
        step = simulate(sized, timed=2).step_ns
        if step / 1000 > LARGEST_STEP_US:
            return None
        if step > wanted * host:
            return sized
    return None


def with_enough_workers(job: Job) -> Job | None:
    """Return the job with so many workers that they make batches in three quarters of the step, or None."""
    free = replace(job, data=replace(job.data, sample_us=0.0, collate_us=0.0))
    step = simulate(free, timed=4).step_ns / 1000
    cost = job.settings.batch_size * job.data.sample_us / job.machine.host_speed
    workers = max(1, math.ceil(cost / (0.75 * step)))
    return job.with_settings({"num_workers": workers}) if workers < job.machine.cores else None


def is_healthy(job: Job) -> bool:
    """Return whether nothing that could be better costs more than `HEALTHY`, each thing made perfect by itself."""
    faster = replace(job.machine, host_speed=1e3 * job.machine.host_speed)
    perfect = (
        replace(job, data=replace(job.data, sample_us=0.0, collate_us=0.0)),
        replace(job, machine=faster, data=replace(job.data, sample_us=job.data.sample_us * 1e3)),
        replace(job, network=replace(job.network, sample_bytes=8)),
        job.with_habits(logs_item=False, sync_times=0, teeth=0),
    )
    before = sample_ns(job, 8)
    return all(1 - sample_ns(better, 8) / before < HEALTHY for better in perfect)
