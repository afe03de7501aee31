"""Faults that can exist on the CPU, as real runs: switched on by a setting, diagnosed, cured if settings can."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tracelock
from tracelock.analysis.analyze import analyze
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.propose import propose
from tracelock.diagnosis.samples import read_samples
from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.faults.draw import WORTH
from tracelock.faults.grade import CURED, Answer
from tracelock.io import digest, read_json, schema, write_json
from tracelock.runner.settings import defaults
from tracelock.trace import read_trace

PROGRAM = Path(tracelock.__file__).parents[1] / "run_workload.py"
BASE: dict[str, Any] = {"batch_size": 32, "width": 1024, "samples": 1024}
# Threads that spin while they wait make a step a hundred times longer where other programs run: let them sleep.
QUIET = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class RealFault:
    """One fault: what switches it on, and the code that should name it; `healthy` are the same settings without it."""

    name: str
    code: str
    settings: dict[str, Any]
    healthy: dict[str, Any] = field(default_factory=dict)
    cure: str = "code"  # "settings" where some setting removes it
    costs: bool = True  # False: it costs no time now


REAL: tuple[RealFault, ...] = (
    RealFault("loading in the main process", "dataloader-bound", {"fault": "slow_samples"}, cure="settings"),
    RealFault(
        "slow workers",
        "dataloader-bound",
        {"fault": "slow_samples", "strength": 4.0, "num_workers": 1, "persistent_workers": True},
        cure="settings",
    ),
    RealFault(
        "workers started each epoch",
        "worker-startup",
        {"fault": "slow_start", "num_workers": 1, "samples": 160},
        {"num_workers": 1, "samples": 160, "persistent_workers": True},
        cure="settings",
    ),
    RealFault("collate piece by piece", "slow-collate", {"fault": "stacked_collate"}),
    RealFault("operator in a loop", "frequent-operator", {"fault": "repeated_stack", "strength": 10.0}),
    RealFault("slow operator", "dominant-operator", {"fault": "slow_operator"}),
    RealFault("pauses: checkpoint", "step-gaps", {"fault": "checkpoint"}),
    RealFault("pauses: logging", "step-gaps", {"fault": "logging"}),
    RealFault("pauses: validation", "step-gaps", {"fault": "validation", "strength": 2.0}),
    RealFault("leak", "memory-growth", {"fault": "leak"}, costs=False),
    RealFault("sawtooth", "memory-sawtooth", {"fault": "sawtooth", "strength": 2.0}, costs=False),
    RealFault(
        "too few threads", "few-threads", {"threads": 1, "batch_size": 256}, {"batch_size": 256}, cure="settings"
    ),
    RealFault("too many threads", "oversubscription", {"threads": 16}, cure="settings"),
)
# Where a GPU is: what only a device can show. Wide layers and large batches keep it busy where nothing is wrong.
WIDE: dict[str, Any] = {
    "width": 4096,
    "batch_size": 4096,
    "samples": 16384,
    "matmul_precision": "high",
    "num_workers": 4,
}
WIDE |= {"persistent_workers": True, "pin_memory": True, "non_blocking": True}
NARROW: dict[str, Any] = {**WIDE, "width": 256, "layers": 40}
ON_GPU: tuple[RealFault, ...] = (
    RealFault(
        "loading in the main process",
        "dataloader-bound",
        {**WIDE, "num_workers": 0, "persistent_workers": False},
        WIDE,
        "settings",
    ),
    RealFault(
        "synchronisation: item",
        "synchronization",
        {**WIDE, "fault": "item", "layers": 40, "width": 1024},
        {**WIDE, "layers": 40, "width": 1024},
    ),
    RealFault("small batches", "launch-bound", {**NARROW, "batch_size": 8, "samples": 4096}, NARROW, "settings"),
    RealFault("full precision", "matmul-precision", {**WIDE, "matmul_precision": "highest"}, WIDE, "settings"),
    RealFault("slow operator", "dominant-operator", {**WIDE, "fault": "slow_operator", "strength": 20.0}, WIDE),
    RealFault("pauses: logging", "step-gaps", {**WIDE, "fault": "logging"}, WIDE),
)
HEALTHY: tuple[dict[str, Any], ...] = (
    {"kind": "mlp"},
    {"kind": "mlp", "batch_size": 64},
    {"kind": "conv", "width": 512},
    {"kind": "conv", "batch_size": 64},
    {"kind": "transformer", "width": 128},
    {"kind": "transformer", "width": 256},
)


class Bench:
    """Makes runs below a folder, each once."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.folder, self.device = folder, device
        self._made: dict[str, tuple[Diagnosed, float]] = {}

    def measure(self, settings: dict[str, Any]) -> tuple[Diagnosed, float]:
        """Return the diagnosis of a run with `settings`, and the time of a sample in its timed steps, µs."""
        name = digest(settings)[:12]
        if name not in self._made:
            self._made[name] = self._run(name, settings)
        return self._made[name]

    def _run(self, name: str, settings: dict[str, Any]) -> tuple[Diagnosed, float]:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "spec.json", _spec(name, settings, self.device))
        command = [
            sys.executable,
            str(PROGRAM),
            "--spec",
            str(folder / "spec.json"),
            "--repeat",
            "1",
            "--output",
            str(folder),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **QUIET})
        if done.returncode:
            raise TracelockError(Problem(str(folder), done.stderr.strip()[-400:]), EXIT_FAILED)
        run = read_json(folder / "run.json", "run")
        trace = read_trace(folder / run["profiled"]["trace"])
        timed = run["timed"]
        sample_us = timed["duration_us"] / timed["samples"]
        return diagnose(analyze(trace), run=run, samples=read_samples(folder / "samples.csv")), sample_us


def _spec(name: str, settings: dict[str, Any], device: str) -> dict[str, Any]:
    profiler = {"wait": 1, "warmup": 1, "active": 6, "repeat": 1, "profile_memory": True, "with_stack": True}
    return {
        "schema": schema("spec"),
        "experiment": "faults",
        "environment": "here",
        "variant": name,
        "digest": digest(settings),
        "workload": "tracelock.faults.workloads:build",
        "settings": settings,
        "device": device,
        "seed": 0,
        "timing": {"warmup_steps": 4, "steps": 24},
        "profiler": profiler,
    }


def answers(folder: Path) -> Iterator[Answer]:
    """Yield the answer to each real fault of the CPU and each healthy control, as they are run below `folder`."""
    yield from graded(Bench(folder), REAL, HEALTHY)


def answers_on_gpu(folder: Path) -> Iterator[Answer]:
    """Yield the same on a GPU, for what only a device can show."""
    yield from graded(Bench(folder, "cuda"), ON_GPU, (WIDE, NARROW))


def graded(bench: Bench, faults: Sequence[RealFault], controls: Sequence[dict[str, Any]]) -> Iterator[Answer]:
    """Yield the answer to each fault and to each healthy control."""
    for fault in faults:
        yield _faulty(bench, fault)
    for number, settings in enumerate(controls):
        diagnosed, _ = bench.measure({**BASE, **settings})
        codes = tuple(finding.code for finding in diagnosed.findings)
        yield Answer("healthy", number, "no-bottleneck", codes, 0.0, None, None, codes[0] == "no-bottleneck", True)


def _faulty(bench: Bench, fault: RealFault) -> Answer:
    settings = {**BASE, **fault.settings}
    diagnosed, faulty = bench.measure(settings)
    _, healthy = bench.measure({**BASE, **fault.healthy})
    named = next((finding for finding in diagnosed.findings if finding.code == fault.code), None)
    codes = tuple(finding.code for finding in diagnosed.findings)
    if fault.cure == "code":
        cured = named is not None and any(remedy.code for remedy in named.remedies)
    else:
        cured = _cured(bench, settings, diagnosed, faulty - CURED * (faulty - healthy))
    return Answer(
        family=fault.name,
        seed=0,
        expected=fault.code,
        found=codes,
        cost=1 - healthy / faulty,
        bound=named.gain_at_most if named else None,
        cured=cured,
        right=codes[0] == fault.code,
        facts=True,
        graded=not fault.costs or 1 - healthy / faulty >= WORTH,
    )


def _cured(bench: Bench, settings: dict[str, Any], diagnosed: Diagnosed, goal_us: float) -> bool:
    """Return whether a run with some proposed change takes `goal_us` a sample or less."""
    resolved = {**defaults(), **settings}
    changes = [proposal.settings for proposal in propose(diagnosed, resolved)]
    return any(bench.measure({**settings, **change})[1] <= goal_us for change in changes)
