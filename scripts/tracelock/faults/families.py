"""Faults that can be injected into a healthy job: one switch each, and how it is turned back.

A family turns a healthy job into one with its fault. The fault's true cost is what turning it back saves, by
simulation; draws whose fault costs too little to be called a main cause, or that have no place in their job, are drawn
again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from tracelock.faults.healthy import with_enough_workers
from tracelock.faults.simulator.job import Job, World
from tracelock.faults.simulator.simulate import simulate

# Copying and launching together take the host longer than the step, by so much that waiting for the copy shows.
BUSY_HOST = 1.2
# What a family returns: the faulty job and the same job healed; None where the fault has no place in this job.
Pair: TypeAlias = tuple[Job, Job] | None
Inject: TypeAlias = Callable[[Random, Job], Pair]


@dataclass(frozen=True)
class Family:
    """One kind of fault."""

    name: str
    code: str  # of the finding that names it
    inject: Inject
    costs: bool = True  # False: it costs no time now (memory that is never given back)
    cure: str = "settings"  # "code" where no setting removes it, "either" where advice on code does as well
    ranks: bool = False  # all ranks' traces are looked at together
    recorded: int = 8  # steps


def _times(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _step_us(job: Job) -> float:
    return simulate(job, timed=4).step_ns / 1000


def _loading_takes(job: Job, part: float) -> Job:
    """Return the job with samples so costly that one process needs `part` steps for a batch."""
    cost = part * _step_us(job) * job.machine.host_speed / job.settings.batch_size
    return job.with_data(sample_us=cost)


def main_process_loading(random: Random, job: Job) -> Pair:
    """Load in the training process what workers loaded."""
    healed = with_enough_workers(_loading_takes(job, _times(random, 0.2, 4.0)))
    return None if healed is None else (healed.with_settings({"num_workers": 0}), healed)


def slow_workers(random: Random, job: Job) -> Pair:
    """Have too few workers for the cost of the samples."""
    workers = random.choice((1, 2, 3, 4))
    healed = with_enough_workers(_loading_takes(job, workers * random.uniform(1.2, 2.5)))
    return None if healed is None else (healed.with_settings({"num_workers": workers}), healed)


def worker_startup(random: Random, job: Job) -> Pair:
    """Start the workers again in each of many short epochs."""
    healed = job.with_data(epoch_steps=random.randint(8, 20), worker_start_us=_times(random, 1e5, 2e6))
    return healed.with_settings({"persistent_workers": False}), healed


def slow_collate(random: Random, job: Job) -> Pair:
    """Put each batch together, in the training process, by hundreds of small operators."""
    cheap = job.with_data(sample_us=0.02 * _step_us(job) / job.settings.batch_size)
    healed = cheap.with_settings({"num_workers": 0})
    return healed.with_data(collate_calls=random.randint(100, 700), collate_us=random.uniform(8, 30)), healed


def _copying(job: Job, part: float, rate_gbs: float) -> Job:
    """Return the job with samples so large that copying a batch takes `part` of the step at a rate."""
    size = part * _step_us(job) * rate_gbs * 1e3 / job.settings.batch_size
    return replace(job, network=replace(job.network, sample_bytes=max(8, int(size))))


def pageable(random: Random, job: Job) -> Pair:
    """Copy batches from pageable memory, each copy waited for."""
    healed = _copying(job.with_habits(prefetches=False), random.uniform(0.015, 0.03), job.machine.pinned_gbs)
    return healed.with_settings({"pin_memory": False, "non_blocking": False}), healed


def blocking(random: Random, job: Job) -> Pair:
    """Copy the next batch on a stream of its own, and wait for it on the host, which has little time to spare."""
    part = random.uniform(0.6, 0.95)
    host = _step_us(job.with_settings({"batch_size": 1}))
    while part + host / _step_us(job) < BUSY_HOST and job.settings.batch_size > 1:
        job = job.with_settings({"batch_size": job.settings.batch_size // 2})
    healed = _copying(job.with_habits(prefetches=True), part, job.machine.pinned_gbs)
    return healed.with_settings({"non_blocking": False}), healed


def not_overlapped(random: Random, job: Job) -> Pair:
    """Copy large batches on the stream of the kernels."""
    healed = _copying(job.with_habits(prefetches=True), random.uniform(0.12, 0.6), job.machine.pinned_gbs)
    return healed.with_habits(prefetches=False), healed


def _synchronizing(kind: str) -> Inject:
    def inject(random: Random, job: Job) -> Pair:
        return job.with_habits(sync=kind, sync_times=random.randint(3, 80)), job

    inject.__doc__ = f"Wait for the device in the middle of the step: {kind}."
    return inject


def small_batch(random: Random, job: Job) -> Pair:
    """Train with batches so small that the host launches more slowly than the device works.

    What that costs is what a host without any dispatch would save: a device can be slow on small batches, too, for
    reasons of its own.
    """
    calm = job.with_habits(logs_item=False)
    small = calm.with_settings({"batch_size": max(1, job.settings.batch_size // random.choice((4, 8, 16, 32)))})
    return small, replace(small, machine=replace(small.machine, host_speed=1e3 * small.machine.host_speed))


def one_by_one_optimizer(random: Random, job: Job) -> Pair:
    """Update parameters one by one."""
    healed = job.with_habits(logs_item=False)
    return healed.with_settings({"optimizer_foreach": False, "optimizer_fused": False}), healed


def full_precision(random: Random, job: Job) -> Pair:
    """Leave the tensor cores unused."""
    if job.machine.capability[0] >= 8 and job.network.kind == "conv":
        return None  # convolutions use TF32 there unless that is forbidden
    plain = {"matmul_precision": "highest", "amp": "off"}
    return job.with_settings(plain), job


def wrong_layout(random: Random, job: Job) -> Pair:
    """Give convolutions operands in the layout that their tensor-core kernels do not compute in."""
    if job.network.kind != "conv" or job.precision("conv") == "fp32":
        return None
    return job.with_settings({"channels_last": False}), job


def memory_pressure(random: Random, job: Job) -> Pair:
    """Ask for more memory than the device has, so that the allocator gives blocks back and asks again."""
    return job.with_habits(retries=random.randint(1, 10), fits=job.settings.batch_size // 2), job


def leak(random: Random, job: Job) -> Pair:
    """Keep memory from each step."""
    return job.with_habits(leak_bytes=int(_times(random, 2e5, 5e7))), job


def sawtooth(random: Random, job: Job) -> Pair:
    """Allocate and free small blocks by the hundred, while the host is ahead."""
    teeth = random.randint(550, 1500)
    calm = job.with_habits(logs_item=False)
    while _step_us(calm) < 110 * teeth and calm.settings.batch_size < 65536:
        calm = calm.with_settings({"batch_size": 2 * calm.settings.batch_size})
    # Workers that keep up with the smaller batch keep up with the larger one.
    return calm.with_habits(teeth=teeth), calm


def slow_network(random: Random, job: Job) -> Pair:
    """Reduce gradients over a slow network, or after the backward pass instead of beside it."""
    healed = replace(job, world=World(ranks=random.choice((2, 4))))
    if random.random() < 0.5:
        return healed.with_habits(overlaps=False), healed
    slow = replace(healed.machine, network_gbs=healed.machine.network_gbs / random.choice((8, 16, 32, 64)))
    return replace(healed, machine=slow), healed


def straggler(random: Random, job: Job) -> Pair:
    """Let one rank's device be slower than the others'."""
    healed = replace(job, world=World(ranks=random.choice((3, 4))))
    return replace(healed, world=replace(healed.world, straggler=random.uniform(1.15, 2.0))), healed


def imbalance(random: Random, job: Job) -> Pair:
    """Give the ranks uneven work in each step."""
    healed = replace(job, world=World(ranks=4))
    return replace(healed, world=replace(healed.world, imbalance=random.uniform(0.15, 0.4))), healed


def late_hosts(random: Random, job: Job) -> Pair:
    """Hold up now this and now that rank's host for much of a step; their devices compute equally long."""
    healed = replace(job, world=World(ranks=4))
    return replace(healed, world=replace(healed.world, late_us=random.uniform(0.5, 1.5) * _step_us(job))), healed


def late_host(random: Random, job: Job) -> Pair:
    """Hold up one rank's host in every step; the devices compute equally long."""
    healed = replace(job, world=World(ranks=4))
    late = random.uniform(0.5, 1.5) * _step_us(job)
    return replace(healed, world=replace(healed.world, late_us=late, late_last=True)), healed


def repeated(random: Random, job: Job) -> Pair:
    """Call a small operator hundreds of times where one call could do."""
    return job.with_habits(repeated=random.randint(80, 700)), job


def slow_operator(random: Random, job: Job) -> Pair:
    """Use one operator that takes much too long."""
    part = _times(random, 0.3, 2.0)
    return job.with_habits(slow_sample_us=part * _step_us(job) / job.settings.batch_size), job


def _pausing(kind: str) -> Inject:
    def inject(random: Random, job: Job) -> Pair:
        every = random.choice((1, 2, 4)) if kind != "validation" else random.choice((2, 4))
        pause = every * _times(random, 0.15, 2.0) * _step_us(job)
        return job.with_habits(pause=kind, pause_every=every, pause_us=max(700.0, pause)), job

    inject.__doc__ = f"Stop training now and then: {kind}."
    return inject


def throttled(random: Random, job: Job) -> Pair:
    """Hold the device's clock down."""
    return replace(job, clock=random.uniform(0.5, 0.86)), job


def waiting_for_others(random: Random, job: Job) -> Pair:
    """Wait in a copy for a device that another process holds."""
    held = random.uniform(0.15, 1.0) * _step_us(job)
    return job.with_habits(sync="foreign", sync_times=1, foreign_us=held), job


def stuck(random: Random, job: Job) -> Pair:
    """Let the host be stuck, now and then, in calls that are short as a rule."""
    step = _step_us(job)
    length = max(4000.0, random.uniform(0.5, 3.0) * step)
    healed = job.with_habits(stalls=1e-9)
    return healed.with_habits(stalls=random.uniform(0.8, 3.0), stall_us=length), healed


FAMILIES: tuple[Family, ...] = (
    Family("loading in the main process", "dataloader-bound", main_process_loading),
    Family("slow workers", "dataloader-bound", slow_workers),
    Family("workers started each epoch", "worker-startup", worker_startup),
    Family("collate piece by piece", "slow-collate", slow_collate, cure="code"),
    Family("pageable copies", "pageable-copies", pageable),
    Family("blocking copies", "blocking-copies", blocking),
    Family("copies not overlapped", "copies-not-overlapped", not_overlapped, cure="code"),
    *(
        Family(f"synchronisation: {kind}", "synchronization", _synchronizing(kind), cure="code")
        for kind in ("item", "nonzero", "cpu", "synchronize")
    ),
    Family("small batches", "launch-bound", small_batch),
    Family("optimizer one by one", "launch-bound", one_by_one_optimizer),
    Family("full precision", "matmul-precision", full_precision),
    Family("wrong layout", "memory-layout", wrong_layout),
    Family("allocator under pressure", "memory-pressure", memory_pressure, cure="either"),
    Family("leak", "memory-growth", leak, costs=False, cure="code"),
    Family("sawtooth", "memory-sawtooth", sawtooth, costs=False, cure="code"),
    Family("communication exposed", "communication-exposed", slow_network, cure="code"),
    Family("straggling rank", "slow-device", straggler, cure="code", ranks=True),
    Family("uneven ranks", "rank-imbalance", imbalance, cure="code", ranks=True),
    Family("late hosts", "late-host", late_hosts, cure="code", ranks=True),
    Family("one late host", "straggling-rank", late_host, cure="code", ranks=True),
    Family("operator in a loop", "frequent-operator", repeated, cure="code"),
    Family("slow operator", "dominant-operator", slow_operator, cure="code"),
    *(
        Family(f"pauses: {kind}", "step-gaps", _pausing(kind), cure="code")
        for kind in ("checkpoint", "logging", "validation")
    ),
    Family("synchronisation: foreign", "synchronization", waiting_for_others, cure="code"),
    Family("host stalls", "host-stalls", stuck, cure="code"),
    Family("throttled clock", "throttling", throttled, cure="code"),
)
