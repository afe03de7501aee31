"""run.json: what was measured, in the words of the contract; what is not known is null and says why."""

from __future__ import annotations

import math
import os
import platform
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tracelock.io import schema
from tracelock.runner.gpus import Gpu
from tracelock.runner.job import SHARED_NODE, job_facts
from tracelock.runner.lease import core_text
from tracelock.runner.loop import Steps
from tracelock.runner.measure import Measurement, Prepared
from tracelock.runner.outside.cores import NOT_TOLD
from tracelock.runner.process import affinity, cpu_name, usable_cores
from tracelock.runner.sampler import INTERVAL_S
from tracelock.runner.spec import Spec
from tracelock.runner.window import Window

SAMPLES = "samples.csv"
_NO_GPU = "the run had no GPU"
_NO_CHECK = "the run was made without the check of a study's environment, or it has no lock"


@dataclass(frozen=True)
class Circumstances:
    """Under what circumstances a run was made."""

    spec: Spec
    repeat: int
    token: str
    started: datetime
    ended: datetime
    device: str
    gpu: Gpu | None
    threads: int
    torch_version: str
    environment_check: dict[str, Any]


def record(around: Circumstances, prepared: Prepared, measured: Measurement, warnings: Sequence[str]) -> dict[str, Any]:
    """Return the document run.json."""
    spec = around.spec
    document = {
        "schema": schema("run"),
        "experiment": spec.experiment,
        "environment": spec.environment,
        "variant": spec.variant,
        "repeat": around.repeat,
        "digest": spec.digest,
        "spec_digest": spec.spec_digest,
        "token": around.token,
        "started": around.started.isoformat(),
        "ended": around.ended.isoformat(),
        "host": socket.gethostname(),
        "cluster": job_facts(),
        "device": _device(around),
        "environment_check": around.environment_check,
        "python": platform.python_version(),
        "torch": around.torch_version,
        "threads": around.threads,
        "cores": usable_cores(),
        "affinity": core_text(affinity()) or None,
        "exclusive": spec.exclusive,
        "seed": spec.seed,
        "settings": prepared.settings.plain(),
        "warmup": {"steps": len(measured.warmup.step_ns), "duration_us": measured.warmup.duration_ns / 1000},
        "timed": _timed(measured.timed),
        "profiled": _profiled(measured.window, measured.timed),
        "memory": measured.memory,
        "samples": _samples(measured),
        "epochs": measured.epochs,
        "warnings": [*warnings, *_warnings(around, prepared, measured)],
    }
    return {**document, "unknown": _unknown(document, around.device)}


def _device(around: Circumstances) -> dict[str, Any]:
    gpu = around.gpu
    if around.device == "cpu":
        return {"type": "cpu", "index": None, "uuid": None, "name": cpu_name()}
    import torch

    name = torch.cuda.get_device_name(0)
    return {"type": "cuda", "index": gpu and gpu.index, "uuid": gpu and gpu.uuid, "name": name}


def _timed(timed: Steps) -> dict[str, Any]:
    seconds = timed.duration_ns / 1e9
    losses = timed.losses()
    return {
        "steps": len(timed.step_ns),
        "duration_us": timed.duration_ns / 1000,
        "step_us": [value / 1000 for value in timed.step_ns],
        "device_step_us": timed.device_us(),
        "loading_us": [value / 1000 for value in timed.loading_ns],
        "queued_us": timed.queued_us(),
        "epoch_starts": timed.epoch_starts,
        "samples": timed.samples,
        "throughput_per_s": None if timed.samples is None else timed.samples / seconds,
        "loss": losses and [loss if math.isfinite(loss) else None for loss in losses],
        "stopped_by": timed.stopped_by,
    }


def _profiled(window: Window, timed: Steps) -> dict[str, Any]:
    names = [trace.name for trace in window.traces]
    return {
        "steps": len(window.step_us),
        "step_us": window.step_us,
        "queued_us": window.queued_us,
        "device_step_us": window.device_step_us,
        "overhead_ratio": _overhead(window, timed),
        "trace": names[0] if names else None,
        "traces": names,
        "trace_bytes": window.traces[0].stat().st_size if names else None,
        "stopped_by": window.stopped_by,
    }


def _overhead(window: Window, timed: Steps) -> float | None:
    """Return mean profiled by mean timed step: by the device's own times where there are some, else the host's."""
    device_us = timed.device_us()
    recorded, plain = (
        (window.device_step_us, device_us)
        if window.device_step_us and device_us
        else (window.step_us, [value / 1000 for value in timed.step_ns])
    )
    return (sum(recorded) / len(recorded)) / (sum(plain) / len(plain)) if recorded else None


def _samples(measured: Measurement) -> dict[str, Any]:
    sampler = measured.sampler
    return {
        "file": SAMPLES,
        "columns": sampler.columns,
        "count": len(sampler.rows),
        "interval_s": INTERVAL_S,
        "cpu_s": sampler.cpu_s,
    }


def _unknown(document: dict[str, Any], device: str) -> dict[str, str]:
    """Return why each figure that is null is not known, by key path."""
    cut = document["profiled"]["stopped_by"]
    no_trace = f"{cut} left no trace" if cut else "the profiler recorded no step"
    no_step = f"{cut} came before the first recorded step" if cut else "the profiler recorded no step"
    reasons = {
        "cluster": "no batch system started the run",
        "affinity": "this system does not tell to which cores a process is bound",
        "device.index": _NO_GPU if device == "cpu" else "the GPU cannot be asked through NVML or nvidia-smi",
        "device.uuid": _NO_GPU if device == "cpu" else "the GPU cannot be asked through NVML or nvidia-smi",
        "environment_check.digest": _NO_CHECK,
        "environment_check.locked": _NO_CHECK,
        "environment_check.unlocked": _NO_CHECK,
        "timed.device_step_us": _NO_GPU,
        "timed.queued_us": NOT_TOLD,
        "profiled.queued_us": NOT_TOLD if document["profiled"]["steps"] else no_step,
        "timed.samples": "the batches show no first dimension to count; give the Workload a function `samples`",
        "timed.throughput_per_s": "the samples in a batch are not known",
        "timed.loss": "the workload's step returns no loss",
        "profiled.device_step_us": _NO_GPU,
        "profiled.overhead_ratio": no_step,
        "profiled.trace": no_trace,
        "profiled.trace_bytes": no_trace,
        "memory.peak_tree_rss_bytes": "this system does not tell the memory of processes",
        "memory.peak_allocated_bytes": _NO_GPU,
        "memory.peak_reserved_bytes": _NO_GPU,
    }
    return {path: why for path, why in reasons.items() if _at(document, path) is None}


def _at(document: dict[str, Any], path: str) -> Any:
    value: Any = document
    for key in path.split("."):
        value = value[key]
    return value


def _warnings(around: Circumstances, prepared: Prepared, measured: Measurement) -> list[str]:
    """Return what a reader of the figures has to know."""
    spec, settings = around.spec, prepared.settings
    warnings = [f"the workload never looked at {name!r}" for name in settings.unread(prepared.own)]
    if settings["pin_memory"] and around.device == "cpu":
        warnings.append("pin_memory has no effect without a GPU")
    if around.gpu and around.gpu.busy:
        warnings.append(f"{around.gpu.busy} other processes computed on this GPU when the run began")
    for part, steps, planned in (
        ("warm-up", measured.warmup, spec.timing.warmup_steps),
        ("timed part", measured.timed, spec.timing.steps),
    ):
        if steps.stopped_by:
            warnings.append(f"{steps.stopped_by} cut the {part} to {len(steps.step_ns)} of {planned} steps")
    if os.environ.get(SHARED_NODE):
        warnings.append("other jobs may have used this node during the run (share: node)")
    losses = measured.timed.losses() or []
    if not all(map(math.isfinite, losses)):
        warnings.append("the loss is not finite in some timed steps")
    return warnings + measured.window.warnings
