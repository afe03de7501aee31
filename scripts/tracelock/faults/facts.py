"""What the runner would have written beside a simulated trace: run.json and the samples of the device."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.simulate import Outcome
from tracelock.io import schema

FULL_CLOCK = {"Tesla V100-SXM2-16GB": 1530.0, "NVIDIA A100-SXM4-80GB": 1410.0, "NVIDIA H100 80GB HBM3": 1980.0}


def run_facts(job: Job, outcome: Outcome, rank: int = 0) -> dict[str, Any]:
    """Return the document ``tracelock/run/1`` of a simulated run, as far as a diagnosis reads it."""
    steps = outcome.timed_steps(rank)
    first = outcome.warm_up
    starts = [step - first for step in outcome.ranks[rank].epoch_starts if first <= step < first + len(steps)]
    step_us = [(step.end - step.start) / 1000 for step in steps]
    return {
        "schema": schema("run"),
        "settings": {**asdict(job.settings), "drop_last": True, "cudnn_benchmark": False},
        "device": {"type": "cuda", "index": rank, "name": job.machine.name},
        "threads": job.settings.threads,
        "cores": job.machine.cores,
        "timed": {
            "steps": len(steps),
            "duration_us": outcome.timed_ns / 1000,
            "step_us": step_us,
            "loading_us": [step.loading / 1000 for step in steps],
            "epoch_starts": starts,
        },
        "profiled": {
            "steps": outcome.recorded,
            "overhead_ratio": outcome.recorded_ns / outcome.recorded / outcome.step_ns,
        },
    }


def device_samples(job: Job, count: int = 40) -> dict[str, list[float | str]]:
    """Return what was sampled of the device: at its full clock for a moment, then as the job's clock allows."""
    random = seeded(job.seed)
    full = FULL_CLOCK.get(job.machine.name, 1500.0)
    cool = max(2, count // 10)
    clocks = [full if index < cool else full * job.clock * random.uniform(0.99, 1.01) for index in range(count)]
    reason = random.choice(("software_thermal", "hardware_thermal", "power_cap")) if job.clock < 1.0 else ""
    hot = 84.0 if job.clock < 1.0 else 62.0
    return {
        "gpu_sm_clock_mhz": [min(full, clock) for clock in clocks],
        "gpu_throttle": ["" if index < cool else reason for index in range(count)],
        "gpu_temperature_c": [hot + random.uniform(-3, 3) for _ in range(count)],
    }
