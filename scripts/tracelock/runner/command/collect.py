"""Makes a run, with the files that every run has, of what a process wrote."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracelock.io import digest, schema
from tracelock.runner.command.watching import INTERVAL_S, Samples
from tracelock.runner.outside.cores import NOT_TOLD
from tracelock.runner.process import cpu_name, usable_cores

SAMPLES, RUN, TRACE = "samples.csv", "run.json", "trace.json.gz"
_NO_GPU = "the script computed on no GPU"


@dataclass(frozen=True)
class Process:
    """One process that made steps: its record, its own folder, its samples, and how many steps it made."""

    folder: Path
    record: dict[str, Any]
    samples: Samples | None
    steps: int


@dataclass(frozen=True)
class Around:
    """What is known of a run beside what its process wrote."""

    command: Sequence[str]
    started: str
    ended: str
    exit_code: int
    names: Mapping[str, Any] = field(default_factory=dict)  # experiment, environment, variant, repeat, digests
    warnings: Sequence[str] = ()


def processes(folder: Path, samples: Mapping[str, Samples]) -> list[Process]:
    """Return the processes that made steps: ranks in their order, else the one with most steps first."""
    found = []
    for place in folder.iterdir():
        facts = next((place / name for name in ("record.json", "facts.json") if (place / name).is_file()), None)
        if facts is not None:
            record = json.loads(facts.read_text(encoding="utf-8"))
            found.append(Process(place, record, samples.get(place.name), _steps(place, record)))
    return sorted(found, key=lambda each: (each.record["rank"], -each.steps))


def _steps(place: Path, record: Mapping[str, Any]) -> int:
    """Return the steps of a process, also where it was killed before it could write its record."""
    try:
        return int((place / "count").read_bytes() or b"0")
    except (OSError, ValueError):
        return int(record.get("steps", 0))


def document(process: Process, around: Around, trace: Path | None) -> dict[str, Any]:
    """Return run.json of a process that has timed steps; `trace` is its compressed trace, or None."""
    record = process.record
    timed, window = _timed(record["timed"], record), _profiled(record, trace)
    whole = {
        "schema": schema("run"),
        **_names(around),
        "started": around.started,
        "ended": around.ended,
        "host": socket.gethostname(),
        "device": _device(record, process.samples),
        "environment_check": {"fingerprint": None, "digest": None, "locked": None, "unlocked": None},
        "python": record["python"],
        "torch": record["torch"],
        "threads": record["settings"]["threads"],
        "cores": usable_cores(),
        "seed": None,
        "settings": record["settings"],
        "warmup": {"steps": record["warmup"]["steps"], "duration_us": sum(record["warmup"]["step_us"])},
        "timed": timed,
        "profiled": window,
        "memory": _memory(record, process.samples),
        "samples": _samples(process.samples),
        "epochs": None,
        "warnings": [*around.warnings, *_warnings(process, around)],
        "script": _script(process, around),
    }
    return {**whole, "unknown": _unknown(whole)}


def _names(around: Around) -> dict[str, Any]:
    command = list(around.command)
    usual = {
        "experiment": "profile",
        "environment": "default",
        "variant": "base",
        "repeat": 1,
        "digest": digest(command),
        "spec_digest": digest(command),
        "token": "",
    }
    return {**usual, **around.names}


def _timed(timed: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    duration = sum(timed["step_us"])
    samples = None if None in timed["samples"] or not timed["samples"] else sum(timed["samples"])
    return {
        "steps": timed["steps"],
        "duration_us": duration,
        "step_us": timed["step_us"],
        "device_step_us": timed["device_step_us"],
        "loading_us": timed["loading_us"],
        "queued_us": timed.get("queued_us"),
        "epoch_starts": timed["epoch_starts"],
        "samples": samples,
        "throughput_per_s": None if samples is None or not duration else samples / (duration / 1e6),
        "loss": None,
        "stopped_by": record["stopped_by"] if record["window"]["steps"] == 0 else None,
        "interrupted": _interrupted(timed["batches"]),
    }


def _interrupted(batches: Sequence[Mapping[str, int]]) -> list[int]:
    """Return the steps in which a second DataLoader was read: an evaluation between two steps."""
    totals: dict[str, int] = {}
    for step in batches:
        for loader, count in step.items():
            totals[loader] = totals.get(loader, 0) + count
    if len(totals) < 2:
        return []
    usual = {loader for loader in totals if sum(loader in step for step in batches) > len(batches) / 2}
    return [number for number, step in enumerate(batches) if not set(step) <= usual]


def _profiled(record: Mapping[str, Any], trace: Path | None) -> dict[str, Any]:
    window, timed = record["window"], record["timed"]["step_us"]
    times = window["step_us"]
    overhead = (sum(times) / len(times)) / (sum(timed) / len(timed)) if times and timed else None
    return {
        "steps": window["steps"],
        "step_us": times,
        "queued_us": window.get("queued_us"),
        "device_step_us": None,
        "overhead_ratio": overhead,
        "trace": None if trace is None else trace.name,
        "traces": [] if trace is None else [trace.name],
        "trace_bytes": None if trace is None else trace.stat().st_size,
        "stopped_by": record["stopped_by"],
        "before_forward_us": window["before_forward_us"],
        "loading_us": window["loading_us"],
    }


def _device(record: Mapping[str, Any], samples: Samples | None) -> dict[str, Any]:
    device = dict(record["device"])
    if device["type"] == "cpu":
        return {**device, "name": cpu_name()}
    gpu = samples.gpu if samples is not None else None
    return {**device, "uuid": device["uuid"] or (gpu.uuid if gpu is not None else None)}


def _memory(record: Mapping[str, Any], samples: Samples | None) -> dict[str, int | None]:
    peaks = {"peak_allocated_bytes": None, "peak_reserved_bytes": None, **record["memory"]}
    own: list[int] = []
    tree: list[int] = []
    if samples is not None:
        at, below = samples.columns.index("rss_bytes"), samples.columns.index("children_rss_bytes")
        rows = [row for row in samples.rows if row[at] is not None]
        own = [int(str(row[at])) for row in rows]
        tree = [int(str(row[at])) + sum(map(int, str(row[below]).split())) for row in rows]
    return {**peaks, "peak_rss_bytes": max(own, default=None), "peak_tree_rss_bytes": max(tree, default=None)}


def _samples(samples: Samples | None) -> dict[str, Any]:
    return {
        "file": SAMPLES,
        "columns": samples.columns if samples is not None else [],
        "count": len(samples.rows) if samples is not None else 0,
        "interval_s": INTERVAL_S,
        "cpu_s": samples.cpu_s if samples is not None else 0.0,
    }


def _script(process: Process, around: Around) -> dict[str, Any]:
    """Return what there is to say of a script beside the figures that every run has."""
    record = process.record
    keys = ("source", "skipped", "rank", "world_size", "local_rank", "pid", "argv", "folder", "executable")
    more = ("own_profiler", "losses", "builds", "changes", "notes", "schedule")
    return {
        "command": list(around.command),
        "exit_code": around.exit_code,
        "steps": process.steps,
        **{key: record[key] for key in (*keys, *more)},
    }


def _warnings(process: Process, around: Around) -> list[str]:
    record, warnings = process.record, list(process.record["notes"])
    if record["skipped"]:
        warnings.append(f"{record['skipped']} steps left the model as it was: their scaled gradients were not finite")
    interrupted = _interrupted(record["timed"]["batches"])
    if interrupted:
        count = len(interrupted)
        warnings.append(f"{count} of the timed steps hold work of another DataLoader, such as an evaluation")
    if around.exit_code:
        warnings.append(f"the script ended with exit code {around.exit_code}")
    return warnings


def _unknown(document: Mapping[str, Any]) -> dict[str, str]:
    """Return why each figure that is null is not known, by key path."""
    no_gpu = document["device"]["type"] == "cpu"
    no_step = "no step was recorded"
    reasons = {
        "device.index": _NO_GPU,
        "device.uuid": _NO_GPU if no_gpu else "this torch does not tell the GPU's UUID",
        "environment_check.digest": "the script ran in its own environment, which nobody checked",
        "environment_check.locked": "the script ran in its own environment, which nobody checked",
        "environment_check.unlocked": "the script ran in its own environment, which nobody checked",
        "timed.device_step_us": _NO_GPU,
        "timed.queued_us": NOT_TOLD,
        "profiled.queued_us": NOT_TOLD if document["profiled"]["steps"] else no_step,
        "timed.samples": "no DataLoader was read, or its batches show no first dimension",
        "timed.throughput_per_s": "the samples in a batch are not known",
        "timed.loss": "losses are kept of the first backward passes alone: script.losses",
        "profiled.device_step_us": _NO_GPU if no_gpu else "the device's own times are taken of timed steps alone",
        "profiled.overhead_ratio": no_step,
        "profiled.trace": document["profiled"]["stopped_by"] or no_step,
        "profiled.trace_bytes": document["profiled"]["stopped_by"] or no_step,
        "memory.peak_rss_bytes": "the process ended before its first sample",
        "memory.peak_tree_rss_bytes": "the process ended before its first sample",
        "memory.peak_allocated_bytes": _NO_GPU,
        "memory.peak_reserved_bytes": _NO_GPU,
    }
    found = {}
    for path, why in reasons.items():
        section, key = path.split(".")
        if document[section].get(key) is None:
            found[path] = why
    return found


def write_samples(path: Path, process: Process) -> None:
    """Write the samples beside the timed steps; a value that is not known is an empty cell."""
    samples, timed = process.samples, process.record["timed"]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(samples.columns if samples is not None else ["time_s"])
        for row in samples.between(timed["began_s"], timed["ended_s"]) if samples is not None else ():
            writer.writerow(["" if value is None else value for value in row])


def pack_trace(process: Process, folder: Path, limit_mb: float | None) -> tuple[Path | None, str | None]:
    """Compress a process's trace into `folder`; return it, or None with a word where it is beyond the limit."""
    name = process.record["window"]["trace"]
    plain = process.folder / name if name else None
    if plain is None or not plain.is_file():
        return None, None
    target = folder / TRACE
    if plain.suffix == ".gz":
        plain.replace(target)
    else:
        with (
            plain.open("rb") as source,
            target.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed,
        ):
            shutil.copyfileobj(source, packed, 1 << 20)
    size = target.stat().st_size / 1e6
    if limit_mb is not None and size > limit_mb:
        target.unlink()
        return None, f"the trace has {size:.1f} MB, over max_trace_mb {limit_mb:g}"
    return target, None
