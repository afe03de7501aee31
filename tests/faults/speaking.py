"""A case for every rule, as files that a run leaves behind: run.json, samples.csv, trace.json.gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import torch

from tracelock.faults.composed.job import Job as ComposedJob
from tracelock.faults.composed.measure import record
from tracelock.faults.composed.plan import draw
from tracelock.faults.files import write_run, write_samples
from tracelock.faults.simulator import network
from tracelock.faults.simulator.job import Data, Habits, Job, Settings, World
from tracelock.faults.simulator.machine import A100
from tracelock.faults.simulator.simulate import simulate
from tracelock.io import schema, write_json

Write: TypeAlias = Callable[[Path], list[Path]]  # writes a run's files to a folder, returns the traces to analyse

MACHINE = replace(A100, noise=0.02)
EASY = Settings(batch_size=4096, num_workers=8)


def _network(kind: str = "mlp", layers: int = 8, width: int = 2048) -> network.Network:
    random = Random(3)
    made = [network.linear(random, width, width, 1) for _ in range(layers)]
    return network.Network(kind, tuple(made), 4096)  # type: ignore[arg-type]


def _convolutions() -> network.Network:
    return next(drawn for seed in range(99) for drawn in (network.draw(Random(seed)),) if drawn.kind == "conv")


def job(**changes: Any) -> Job:
    """Return a healthy job on a GPU, changed as given."""
    known: dict[str, Any] = {"settings": EASY, "data": Data(sample_us=0.1), "habits": Habits(logs_item=False)}
    return Job(**{"machine": MACHINE, "network": _network(), "seed": 1, **known, **changes})


def simulated(timed: int = 8, **changes: Any) -> Write:
    """Return a case that the simulator makes: each rank's run in a folder of its own."""

    def write(folder: Path) -> list[Path]:
        made = job(**changes)
        outcome = simulate(made, timed=timed, recorded=6)
        return [write_run(folder / f"rank{rank}", made, outcome, rank) for rank in range(made.world.ranks)]

    return write


def on_cpu(threads: int, cores: int, operator_us: float = 900.0) -> Write:
    """Return a run on the CPU whose steps are one large product each."""

    def write(folder: Path) -> list[Path]:
        events = [row for number in range(8) for row in _step(number, operator_us)]
        trace = folder / "trace.json.gz"
        trace.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
        timed = {"step_us": [1000.0] * 8, "loading_us": [0.0] * 8, "epoch_starts": [], "steps": 8}
        profiled = {"trace": trace.name, "overhead_ratio": 1.0}
        facts = {"threads": threads, "cores": cores, "timed": timed, "profiled": profiled, "settings": {}}
        write_json(folder / "run.json", {"schema": schema("run"), "samples": {"file": "samples.csv"}, **facts})
        write_samples(folder / "samples.csv", {"rss_bytes": [1, 2], "children_rss_bytes": ["3 4", None]})
        return [trace]

    return write


def _step(number: int, operator_us: float) -> list[dict[str, Any]]:
    at = 1000.0 * number
    lane = {"ph": "X", "pid": 9, "tid": 9}
    step = {**lane, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at, "dur": 1000.0}
    small = [
        {**lane, "cat": "cpu_op", "name": "aten::relu", "ts": at + 920 + 5 * call, "dur": 2.0} for call in range(9)
    ]
    return [step, {**lane, "cat": "cpu_op", "name": "aten::mm", "ts": at + 10, "dur": operator_us}, *small]


def checked_gradients(folder: Path) -> list[Path]:
    """Return eight steps of 1000 µs in which each of ten nodes of the backward pass is checked, as torch records it."""
    lane = {"ph": "X", "pid": 9, "tid": 9, "cat": "cpu_op"}
    events: list[dict[str, Any]] = []
    for number in range(8):
        at = 1000.0 * number
        step = {**lane, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at, "dur": 1000.0}
        events += [step, {**lane, "name": "aten::addmm", "ts": at + 5, "dur": 290.0}]
        for node in range(10):
            start = at + 300 + 65 * node
            engine = "autograd::engine::evaluate_function: AddmmBackward0"
            events.append({**lane, "name": engine, "ts": start, "dur": 60.0})
            events.append({**lane, "name": "AddmmBackward0", "ts": start + 1, "dur": 18.0})
            for place, name in enumerate(("isnan", "any", "_is_any_true", "item")):
                events.append({**lane, "name": f"aten::{name}", "ts": start + 20 + 10 * place, "dur": 9.0})
    trace = folder / "trace.json.gz"
    folder.mkdir(parents=True, exist_ok=True)
    trace.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
    return [trace]


def _settings(**changes: Any) -> Settings:
    return replace(EASY, **changes)


def real(fault: str, count: float = 1.0, network: str = "deep", **changes: Any) -> Write:
    """Return a real run on this CPU with a fault of the random collection, as the runner would have left it."""

    def write(folder: Path) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        plan = replace(draw(1), network=network, depth=30, loader="cached", faults=((fault, 1.0),))
        plan = replace(
            plan,
            **{
                "width": 48,
                "batch": 32,
                "shapes": True,
                "stacks": False,
                "memory": False,
                "optimizer": "sgd",
                **changes,
            },
        )
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # threads that spin are slow where other programs want the cores
        try:
            record(ComposedJob(plan, {fault: count}), plan, folder, recordings=1)
        finally:
            torch.set_num_threads(threads)
        return [folder / "trace.json.gz"]

    return write


COLLECTIVE = {"Collective name": "allreduce", "In msg nelems": 1000, "Group size": 3, "dtype": "Float"}


def late_hosts(folder: Path, always: int | None = None) -> list[Path]:
    """Return three ranks that compute equally long; in each step another host, or always one, launches late."""
    traces = []
    for rank in range(3):
        events = [
            row
            for number in range(6)
            for row in _met(number, late=400.0 if (number % 3 if always is None else always) == rank else 0.0)
        ]
        document = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": events}
        traces.append(folder / f"rank{rank}.json.gz")
        folder.mkdir(parents=True, exist_ok=True)
        traces[-1].write_bytes(gzip.compress(json.dumps(document).encode()))
    return traces


def _met(number: int, late: float) -> list[dict[str, Any]]:
    """Return a step of 1000 µs: 300 of computing, and an all-reduce that all leave at 800."""
    at = 1000.0 * number
    host = {"ph": "X", "pid": 1, "tid": 1}
    device = {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel"}
    place = {"device": 0, "stream": 7}
    arrival = 310.0 + late
    return [
        {**host, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at, "dur": 999.0},
        {**host, "cat": "cpu_op", "name": "aten::mm", "ts": at + 1, "dur": 20.0},
        {**device, "name": "ampere_sgemm_128x64", "ts": at + 5, "dur": 300.0, "args": place},
        {
            **device,
            "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "ts": at + arrival,
            "dur": 800.0 - arrival,
            "args": {**place, **COLLECTIVE, "Process Group Name": "0"},
        },
    ]


SPEAKING: dict[str, Write] = {
    "dataloader-bound": simulated(settings=_settings(num_workers=0), data=Data(sample_us=1.0)),
    "worker-startup": simulated(
        timed=18, settings=_settings(persistent_workers=False), data=Data(sample_us=0.1, epoch_steps=6)
    ),
    "slow-collate": simulated(
        settings=_settings(num_workers=0), data=Data(sample_us=0.01, collate_calls=400, collate_us=12.0)
    ),
    "pageable-copies": simulated(settings=_settings(pin_memory=False, non_blocking=False)),
    "blocking-copies": simulated(
        network=replace(_network(), sample_bytes=89_000),
        settings=_settings(batch_size=512, non_blocking=False),
        habits=Habits(logs_item=False, prefetches=True),
    ),
    "copies-not-overlapped": simulated(network=replace(_network(), sample_bytes=16384)),
    "synchronization": simulated(settings=_settings(batch_size=256), habits=Habits(sync="item", sync_times=20)),
    "launch-bound": simulated(network=_network(layers=30, width=256), settings=_settings(batch_size=16)),
    "matmul-precision": simulated(settings=_settings(matmul_precision="highest")),
    "memory-layout": simulated(
        network=_convolutions(), settings=_settings(batch_size=64, amp="bf16", channels_last=False)
    ),
    "memory-pressure": simulated(habits=Habits(retries=8)),
    "memory-growth": simulated(habits=Habits(leak_bytes=2**24)),
    "memory-sawtooth": simulated(settings=_settings(batch_size=65536), habits=Habits(teeth=900)),
    "communication-exposed": simulated(
        world=World(ranks=2), machine=replace(MACHINE, network_gbs=10.0), habits=Habits(overlaps=False)
    ),
    "straggling-rank": partial(late_hosts, always=2),
    "slow-device": simulated(world=World(ranks=3, straggler=1.6)),
    "late-host": late_hosts,
    "rank-imbalance": simulated(world=World(ranks=4, imbalance=0.4)),
    "frequent-operator": simulated(habits=Habits(repeated=700)),
    "dominant-operator": simulated(habits=Habits(slow_sample_us=3.0)),
    "step-gaps": simulated(habits=Habits(pause="checkpoint", pause_us=5000.0)),
    "throttling": simulated(clock=0.6),
    "host-stalls": simulated(habits=Habits(stalls=1.0, stall_us=15_000.0)),
    "needless-copies": real("clones of activations", 12.0, batch=256),
    "wrong-dtype": real("double precision"),
    "unused-work": real("validation in each step", 6.0),
    "anomaly-detection": checked_gradients,
    "optimizer-bound": real("optimizer one by one", optimizer="adam"),
    "python-time": real("sleep between layers", 300.0, stacks=True),
    "few-threads": on_cpu(threads=1, cores=8),
    "oversubscription": on_cpu(threads=32, cores=8),
}
