"""Samples the processes of a command from outside of them, beside their steps."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracelock.runner.gpu_probes import gpu_probe
from tracelock.runner.gpus import Gpu, list_gpus
from tracelock.runner.probes import Probe, Value, host_probe

INTERVAL_S = 0.25
FACTS = "facts.json"


class Samples:
    """Rows of one process: machine, process tree, and its GPU where it has one. Times are of the monotonic clock."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        gpu = _gpu_of(facts.get("device") or {})
        found = gpu_probe(gpu) if gpu is not None else None
        self._probes: list[Probe] = [host_probe(int(facts["pid"])), *([found] if found is not None else [])]
        self.columns = ["time_s", *(column for probe in self._probes for column in probe.columns)]
        self.rows: list[list[Value]] = []
        self.gpu = gpu
        self.cpu_s = 0.0

    def sample(self) -> list[Value]:
        """Take one sample, keep it and return it."""
        began = time.thread_time()
        row: list[Value] = [time.monotonic()]
        for probe in self._probes:
            row += probe.read()
        self.rows.append(row)
        self.cpu_s += time.thread_time() - began
        return row

    def between(self, began_s: float, ended_s: float) -> list[list[Value]]:
        """Return the rows of a span, seconds counted from its begin; the first one after it, if none is inside."""
        inside = [row for row in self.rows if began_s <= float(row[0] or 0) <= ended_s]
        inside = inside or [row for row in self.rows if float(row[0] or 0) > ended_s][:1]
        return [[round(float(row[0] or 0) - began_s, 4), *row[1:]] for row in inside]


class Watcher:
    """Finds the processes that make steps below a folder, and samples each."""

    def __init__(self, folder: Path, interval_s: float = INTERVAL_S) -> None:
        self._folder = folder
        self._interval_s = interval_s
        self._next = 0.0
        self.processes: dict[str, Samples] = {}

    def __call__(self, pid: int, passed_s: float) -> None:
        """Sample what is due; called by `signals.run_through`."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval_s
        for facts in self._folder.glob(f"*/{FACTS}"):
            if facts.parent.name not in self.processes:
                self.processes[facts.parent.name] = Samples(json.loads(facts.read_text(encoding="utf-8")))
        for samples in self.processes.values():
            samples.sample()


def _gpu_of(device: Mapping[str, Any]) -> Gpu | None:
    """Return the GPU that a process says it computes on, as NVML knows it."""
    if device.get("type") != "cuda":
        return None
    gpus = list_gpus()
    by_uuid = [gpu for gpu in gpus if device.get("uuid") and gpu.uuid == device["uuid"]]
    # Older torch tells no UUID; then the only GPU, or the one of the same name and number.
    by_name = [gpu for gpu in gpus if gpu.name == device.get("name")]
    same = by_uuid or [gpu for gpu in by_name if gpu.index == device.get("index")] or by_name
    return same[0] if same else None
