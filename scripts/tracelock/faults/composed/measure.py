"""Measure one composed workload: ``python -m tracelock.faults.composed.measure SEED FOLDER``; imports torch.

Writes ``truth.json``, ``trace.json.gz`` and, where the plan has facts, ``run.json`` to the folder. Costs are those of
unprofiled steps with and without each fault, in turns, so that a drift of the machine falls on all alike.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from tracelock.faults.composed.job import MAKERS, Job
from tracelock.faults.composed.mutations import BY_NAME
from tracelock.faults.composed.plan import Plan, draw
from tracelock.io import schema, write_json
from tracelock.runner.outside.cores import in_us

LEAST_ROUNDS, MOST_ROUNDS = 6, 24
BUDGET_S = 8.0  # for all rounds of all variants
SHOWS = 0.1  # of the step: what can be told from the noise of a few steps
CYCLE = 12  # steps: what happens every third or fourth step happens equally often in all
RECORDED = 8
RECORDINGS = 5
LOADER = "loader"  # the one part of every workload that is measured like a fault


def main() -> None:
    """Measure the case of a seed."""
    warnings.simplefilter("ignore")  # of what is wrong on purpose
    seed, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    plan = draw(seed)
    counts = calibrated(plan)
    jobs = {"all": Job(plan, counts)}
    for name in counts:
        jobs[name] = Job(plan, {other: count for other, count in counts.items() if other != name})
    if plan.loader in ("dataset", "workers"):
        jobs[LOADER] = Job(plan, counts, loaded=False)
    rounds = in_turns(jobs)
    recorded = record(jobs["all"], plan, folder)
    overhead = fmean(recorded.step_us) / 1e6 / usual(rounds["all"])
    write_json(folder / "truth.json", truth(plan, counts, rounds, overhead))
    if plan.facts:
        write_json(folder / "run.json", facts(plan, jobs["all"], recorded, overhead))


def calibrated(plan: Plan) -> dict[str, float]:
    """Return the count of each fault that gives about the size that the plan wants."""
    healthy = Job(plan, {})
    base = typical(healthy)
    return {name: _count(plan, name, size * base, base) if BY_NAME[name].scaled else 1.0 for name, size in plan.faults}


def _count(plan: Plan, name: str, wanted: float, base: float) -> float:
    """Return the count that takes about `wanted` seconds a step: from one that shows beside a step of `base`."""
    count, more = MAKERS[name].first, 0.0
    for _ in range(4):
        more = typical(Job(plan, {name: count})) - base
        if more >= min(wanted, SHOWS * base) or more >= wanted:
            break
        count = min(MAKERS[name].most, 5 * count)
    return min(MAKERS[name].most, max(1.0, count * wanted / max(more, SHOWS / 5 * base)))


def typical(job: Job, steps: int = CYCLE) -> float:
    """Return the mean of the middle half of some steps, seconds; what comes every fourth step counts."""
    for _ in range(3):
        job.step()
    del job.step_ns[:], job.queued_ns[:]
    for _ in range(2 * steps):
        job.step()
    times = undisturbed(job)
    half = fmean(times[:steps]), fmean(times[steps:])
    return min(half) / 1e9


def in_turns(jobs: Mapping[str, Job]) -> dict[str, list[float]]:
    """Return the mean step of each variant in each round of `CYCLE` steps, seconds.

    Short rounds, so that what disturbs the machine for a second disturbs all alike.
    """
    for job in jobs.values():
        typical(job, 3)
    found: dict[str, list[float]] = {name: [] for name in jobs}
    began = time.monotonic()
    for number in range(MOST_ROUNDS):
        for name, job in jobs.items():
            del job.step_ns[:], job.loading_ns[:], job.queued_ns[:], job.starts[:]
            for _ in range(CYCLE):
                job.step()
            found[name].append(fmean(undisturbed(job)) / 1e9)
        if number >= LEAST_ROUNDS and time.monotonic() - began > BUDGET_S:
            break
    return found


def undisturbed(job: Job) -> list[int]:
    """Return what each step took, less the time in which other programs had its core; ns."""
    return [took - (queued or 0) for took, queued in zip(job.step_ns, job.queued_ns, strict=True)]


def usual(times: Sequence[float]) -> float:
    """Return what a step takes while nothing else wants the core: the lower quartile of the rounds."""
    return quantiles(times, n=4)[0]


@dataclass(frozen=True)
class Recorded:
    """The steps of a trace, with the profiler; microseconds."""

    step_us: list[float]
    queued_us: list[float] | None


def record(job: Job, plan: Plan, folder: Path, recordings: int = RECORDINGS) -> Recorded:
    """Write the trace of eight steps that the machine disturbed least, of some; return what these took.

    What other programs take from a core for a while looks like a fault of the job.
    """
    timed = list(job.step_ns), list(job.loading_ns), list(job.queued_ns), list(job.starts)
    best: Recorded | None = None
    for _ in range(recordings):
        plain = folder / "trace.new.json.gz"
        _profile(job, plan, plain)
        recorded = Recorded([each / 1000 for each in job.step_ns[-RECORDED:]], in_us(job.queued_ns[-RECORDED:]))
        if best is None or sum(recorded.step_us) < sum(best.step_us):
            best = recorded
            plain.replace(folder / "trace.json.gz")
    (folder / "trace.new.json.gz").unlink(missing_ok=True)
    job.step_ns, job.loading_ns, job.queued_ns, job.starts = timed
    if best is None:
        raise ValueError("no recording was asked for")
    return best


def _profile(job: Job, plan: Plan, path: Path) -> None:
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=2, active=RECORDED, repeat=1),
        on_trace_ready=lambda ready: ready.export_chrome_trace(str(path)),
        record_shapes=plan.shapes,
        profile_memory=plan.memory,
        with_stack=plan.stacks,
    ) as profiler:
        for _ in range(2 + RECORDED):
            job.step()
            profiler.step()


def cost(without: Sequence[float], whole: Sequence[float]) -> float:
    """Return what a fault takes of the step, 0..1; below 0 where its absence was slower."""
    return 1 - usual(without) / usual(whole)


def truth(plan: Plan, counts: dict[str, float], rounds: dict[str, list[float]], overhead: float) -> dict[str, Any]:
    """Return what was measured: the cost of each fault as a part of the step, and of both halves of the rounds."""
    costs = {}
    for name, times in rounds.items():
        if name != "all":
            parts = [cost(times[at::2], rounds["all"][at::2]) for at in (0, 1)]
            costs[name] = {"cost": cost(times, rounds["all"]), "low": min(parts), "high": max(parts)}
    return {
        "schema": schema("fault-truth"),
        "plan": asdict(plan),
        "counts": counts,
        "rounds_s": rounds,
        "costs": costs,
        "overhead": overhead,
    }


def facts(plan: Plan, job: Job, recorded: Recorded, overhead: float) -> dict[str, Any]:
    """Return the document ``tracelock/run/1`` as far as a diagnosis reads it."""
    settings = {"batch_size": plan.batch, "num_workers": int(plan.loader == "workers"), "threads": 1}
    return {
        "schema": schema("run"),
        "settings": {**settings, "persistent_workers": plan.loader == "workers"},
        "device": {"type": "cpu"},
        "threads": 1,
        "cores": 1,
        "timed": {
            "steps": len(job.step_ns),
            "duration_us": sum(job.step_ns) / 1000,
            "step_us": [each / 1000 for each in job.step_ns],
            "loading_us": [each / 1000 for each in job.loading_ns],
            "queued_us": in_us(job.queued_ns),
            "epoch_starts": job.starts,
        },
        "profiled": {"steps": RECORDED, **asdict(recorded), "overhead_ratio": overhead, "trace": "trace.json.gz"},
    }


if __name__ == "__main__":
    main()
