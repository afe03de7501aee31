"""What a watched command does now: its steps, as they are streamed, beside samples of its processes."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tracelock.runner.command.slowdown import Detector, Slowdown
from tracelock.runner.command.watching import Watcher

STREAM, CALL = "steps.jsonl", "call.json"
SHOWN = 50  # steps over which the present pace is told
AHEAD = 3  # steps between a call for a window and its begin, so that all ranks hear of it


@dataclass
class Rank:
    """One process that makes steps."""

    folder: Path
    facts: Mapping[str, Any]
    steps: int = 0
    recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=SHOWN))
    detector: Detector = field(default_factory=Detector)
    slowdowns: list[Slowdown] = field(default_factory=list)
    _at: int = 0
    _rest: bytes = b""

    def read(self) -> list[Slowdown]:
        """Read the steps that were streamed since the last time; return the slow-downs that show in them."""
        try:
            with (self.folder / STREAM).open("rb") as stream:
                stream.seek(self._at)
                data = stream.read()
        except OSError:
            return []
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [slow for line in lines if (slow := self._add(json.loads(line)))]
        self.slowdowns += found
        return found

    def _add(self, step: dict[str, Any]) -> Slowdown | None:
        self.steps = step["step"] + 1
        if not step["step"]:  # it begins when torch was imported
            return None
        self.recent.append(step)
        return self.detector.add(step["step"], step["end_s"], step["us"])

    def call(self, step: int, active: int) -> None:
        """Ask the process to record `active` steps from `step` on."""
        temporary = self.folder / f".{CALL}"
        temporary.write_text(json.dumps({"step": step, "active": active}))
        temporary.replace(self.folder / CALL)


class Live(Watcher):
    """Samples processes and reads their steps; `status` is what to show."""

    def __init__(self, folder: Path, interval_s: float, profile_on_slowdown: int = 0) -> None:
        super().__init__(folder, interval_s)
        self._profile = profile_on_slowdown
        self._called = False
        self.ranks: dict[str, Rank] = {}
        self.news: list[tuple[int, Slowdown]] = []

    def __call__(self, pid: int, passed_s: float) -> None:
        """Sample and read what is due."""
        super().__call__(pid, passed_s)
        self.read()

    def read(self) -> None:
        """Read the steps that were streamed."""
        for name, samples in self.processes.items():
            rank = self.ranks.setdefault(name, Rank(self._folder / name, samples.facts))
            for slow in rank.read():
                self.news.append((int(rank.facts["rank"]), slow))
                self._call()

    def _call(self) -> None:
        """Have all ranks record the same steps once, soon."""
        if not self._profile or self._called:
            return
        self._called = True
        first = max(rank.steps for rank in self.ranks.values()) + AHEAD
        for rank in self.ranks.values():
            rank.call(first, self._profile)

    def status(self) -> list[dict[str, Any]]:
        """Return one row for each process: pace, loading share, memory, CPU and GPU; None where it is not known."""
        return [self._row(name, rank) for name, rank in self.ranks.items() if rank.recent]

    def _row(self, name: str, rank: Rank) -> dict[str, Any]:
        steps, samples = list(rank.recent), self.processes[name]
        times = sum(step["us"] for step in steps)
        counted = [step["samples"] for step in steps]
        latest = dict(zip(samples.columns, samples.rows[-1], strict=True)) if samples.rows else {}
        children = str(latest.get("children_rss_bytes") or "").split()
        own = latest.get("rss_bytes")
        return {
            "time_s": round(time.time(), 3),
            "pid": rank.facts["pid"],
            "rank": rank.facts["rank"],
            "step": rank.steps,
            "step_us": median(step["us"] for step in steps),
            "loading_share": sum(step["loading_us"] for step in steps) / times if times else None,
            "samples_per_s": None if None in counted or not times else sum(counted) / (times / 1e6),
            "allocated_bytes": steps[-1]["allocated_bytes"],
            "tree_rss_bytes": None if own is None else int(str(own)) + sum(map(int, children)),
            "process_cpu_percent": latest.get("process_cpu_percent"),
            "cpu_percent": latest.get("cpu_percent"),
            **{key: value for key, value in latest.items() if key.startswith("gpu_")},
            "slowdowns": len(rank.slowdowns),
        }


def prometheus(rows: list[dict[str, Any]], gpus: Mapping[str, Mapping[str, Any]]) -> str:
    """Return rows of `Live.status`, and metrics of a DCGM exporter, in the text format of Prometheus."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        labels = f'{{pid="{row["pid"]}",rank="{row["rank"]}"}}'
        for key, value in row.items():
            if isinstance(value, (int, float)) and key not in ("pid", "rank", "time_s"):
                lines.setdefault(f"tracelock_{key}", []).append(f"tracelock_{key}{labels} {value:g}")
    for gpu, metrics in gpus.items():
        name = escaped(gpu)
        for key, value in metrics.items():
            if isinstance(value, (int, float)):
                lines.setdefault(f"tracelock_dcgm_{key}", []).append(f'tracelock_dcgm_{key}{{gpu="{name}"}} {value:g}')
    return "".join(f"# TYPE {name} gauge\n" + "\n".join(rows_) + "\n" for name, rows_ in sorted(lines.items()))


def escaped(text: str) -> str:
    """Return a label's value with what Prometheus escapes."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Append one JSON line in one write, so that a reader sees whole lines."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, (json.dumps(value, sort_keys=True) + "\n").encode())
    finally:
        os.close(descriptor)
