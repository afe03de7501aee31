"""Write what was recorded as Kineto writes it: the same keys, the same layout, the clock of a real file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.simulate import Outcome
from tracelock.faults.simulator.timeline import BACKWARD, MAIN, Row
from tracelock.io import write_bytes

BASE = 5_147_210_508_556_000  # ns: what the clock of a real file shows
PID = 4242
THREADS = {MAIN: PID, BACKWARD: PID + 59}
STEP = "ProfilerStep#"
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLBACK = {"cudaLaunchKernel": 211, "cudaMemcpyAsync": 41, "cudaStreamSynchronize": 131, "cudaDeviceSynchronize": 165}


@dataclass(frozen=True)
class Style:
    """How the file is written: which extras the profiler was asked for, and whether its clock is whole microseconds."""

    with_stack: bool = True
    profile_memory: bool = True
    whole_microseconds: bool = False
    with_steps: bool = True  # rows of ProfilerStep: the profiler had a schedule


def write_trace(path: Path, job: Job, outcome: Outcome, rank: int = 0, style: Style | None = None) -> None:
    """Write the trace of one rank to `path` (gzip)."""
    style = style or Style()
    lines = list(_events(outcome.ranks[rank].tape.rows, style))
    text = _head(job, rank, style) + ",\n".join(lines) + '\n  ],\n  "traceName": "simulated.pt.trace.json"\n}\n'
    write_bytes(path, gzip.compress(text.encode("utf-8"), compresslevel=3, mtime=0))


def _head(job: Job, rank: int, style: Style) -> str:
    machine = job.machine
    device = {
        "id": 0,
        "name": machine.name,
        "totalGlobalMem": machine.memory_bytes,
        "computeMajor": machine.capability[0],
        "computeMinor": machine.capability[1],
        "numSms": machine.sms,
    }
    head: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [device], "cuda_runtime_version": 12010}
    if job.world.ranks > 1:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": job.world.ranks}
    head |= {"with_stack": int(style.with_stack), "profile_memory": int(style.profile_memory), "record_shapes": 0}
    head |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": 1_700_000_000_000_000_000}
    return json.dumps(head, indent=2)[:-2] + ',\n  "traceEvents": [\n'


def _events(rows: Iterable[Row], style: Style) -> Iterator[str]:
    yield from _names()
    python = 0
    for row in sorted(rows, key=lambda row: (row.start, -row.duration)):
        if row.category == "python_function":
            python += 1
            if style.with_stack:
                yield _complete(row, THREADS[row.where], {"Python id": python, "Python parent id": None}, style)
        elif row.category == "cpu_instant_event":
            if style.profile_memory:
                yield _memory(row, style)
        elif row.name.startswith(STEP) and not style.with_steps:
            continue
        elif row.category in ON_DEVICE:
            yield from _on_device(row, style)
        else:
            yield from _on_host(row, style)


def _names() -> Iterator[str]:
    for pid, label in ((PID, "CPU"), (0, "GPU 0")):
        yield _metadata("process_name", pid, 0, {"name": "python"})
        yield _metadata("process_labels", pid, 0, {"labels": label})
    for thread in THREADS.values():
        yield _metadata("thread_name", PID, thread, {"name": f"thread {thread} (python)"})


def _metadata(name: str, pid: int, tid: int, args: Mapping[str, Any]) -> str:
    return (
        f'  {{\n    "name": "{name}", "ph": "M", "ts": {BASE // 1000}, "pid": {pid}, "tid": {tid},\n'
        f'    "args": {json.dumps(args)}\n  }}'
    )


def _time(value: int, style: Style) -> str:
    """Return nanoseconds as the file's microseconds."""
    if style.whole_microseconds:
        return str(value // 1000)
    return f"{value // 1000}.{value % 1000:03d}"


def _complete(row: Row, tid: int, args: Mapping[str, Any], style: Style, pid: int = PID) -> str:
    start = _time(BASE + row.start, style)
    end = BASE + row.start + row.duration
    # A whole-microsecond clock drops fractions of both ends.
    duration = str(end // 1000 - (BASE + row.start) // 1000) if style.whole_microseconds else _time(row.duration, style)
    return (
        f'  {{\n    "ph": "X", "cat": "{row.category}", "name": {json.dumps(row.name)}, "pid": {pid}, "tid": {tid},\n'
        f'    "ts": {start}, "dur": {duration},\n    "args": {json.dumps(args)}\n  }}'
    )


def _flow(row: Row, phase: str, pid: int, tid: int, style: Style) -> str:
    bound = ', "bp": "e"' if phase == "f" else ""
    return (
        f'  {{\n    "ph": "{phase}", "id": {row.args["correlation"]}, "pid": {pid}, "tid": {tid}, '
        f'"ts": {_time(BASE + row.start, style)},\n    "cat": "ac2g", "name": "ac2g"{bound}\n  }}'
    )


def _on_host(row: Row, style: Style) -> Iterator[str]:
    thread = THREADS[row.where]
    args = {"External id": row.args["external"]}
    if row.category != "cuda_runtime":
        yield _complete(row, thread, args, style)
        return
    yield _complete(
        row, thread, {**args, "cbid": CALLBACK.get(row.name, 0), "correlation": row.args["correlation"]}, style
    )
    if "Launch" in row.name or "Async" in row.name:
        yield _flow(row, "s", PID, thread, style)


def _on_device(row: Row, style: Style) -> Iterator[str]:
    extra = {key: value for key, value in row.args.items() if key not in ("external", "correlation", "graph")}
    args = {"External id": row.args["external"], "device": 0, "context": 1, "stream": row.where, **extra}
    args["correlation"] = row.args["correlation"]
    if "graph" in row.args:
        args["graph id"] = row.args["graph"]
    yield _complete(row, row.where, args, style, pid=0)
    if "graph" not in row.args:
        yield _flow(row, "f", 0, row.where, style)


def _memory(row: Row, style: Style) -> str:
    size, allocated, reserved = row.args["levels"]
    args = {
        "Total Reserved": reserved,
        "Total Allocated": allocated,
        "Bytes": size,
        "Addr": row.args["address"],
        "Device Id": 0,
        "Device Type": 1,
    }
    return (
        f'  {{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {PID}, '
        f'"tid": {THREADS[row.where]},\n    "ts": {_time(BASE + row.start, style)},\n'
        f'    "args": {json.dumps(args)}\n  }}'
    )
