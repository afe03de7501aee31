"""Small traces from lists of rows, for tests of everything that starts from a `Trace`.

    trace = make_trace(
        host=[step(0, 0, 100), op("aten::mm", 10, 20), launch(15, 5, correlation=7)],
        device=[kernel("gemm", 30, 40, correlation=7)],
    )

All times are nanoseconds. Rows may come in any order; the builder sorts them as the reader does (by start, then
longest first). A column that a row does not name is absent (-1, NaN).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracelock.trace.columns import (
    Device,
    DeviceKind,
    DeviceRows,
    FlowKind,
    FlowRows,
    HostKind,
    HostRows,
    MemoryRows,
    Quality,
    Trace,
    TraceFacts,
    TraceWarning,
    Track,
)

MAIN_THREAD = 1


@dataclass(frozen=True)
class Host:
    """A complete event of a host thread. Times in nanoseconds."""

    name: str
    start: int
    duration: int
    kind: HostKind = HostKind.OPERATOR
    thread: int | str = MAIN_THREAD
    pid: int | str = 100
    correlation: int = -1
    external: int = -1
    sequence: int = -1
    forward_thread: int = -1
    shapes: str | None = None
    types: str | None = None
    stack: str | None = None
    python_id: int = -1
    python_parent: int = -1


@dataclass(frozen=True)
class OnDevice:
    """A complete event of a device. Times in nanoseconds."""

    name: str
    start: int
    duration: int
    kind: DeviceKind = DeviceKind.KERNEL
    device: int = 0
    stream: int = 7
    pid: int | str | None = None  # the device's ordinal unless given
    tid: int | str | None = None  # the stream unless given
    correlation: int = -1
    external: int = -1
    bytes: int = -1
    blocks_per_sm: float = float("nan")
    occupancy: float = float("nan")
    graph: int = -1
    collective: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class MemoryEvent:
    """A ``[memory]`` instant. Time in nanoseconds, sizes in bytes."""

    time: int
    bytes: int
    allocated: int = -1
    reserved: int = -1
    address: int = 0
    device_type: int = 0
    device: int = -1
    thread: int | str = MAIN_THREAD
    pid: int | str = 100


@dataclass(frozen=True)
class FlowEnd:
    """One end of a flow arrow. Time in nanoseconds."""

    time: int
    identifier: int
    begins: bool
    kind: FlowKind = FlowKind.LAUNCH
    thread: int | str = MAIN_THREAD
    pid: int | str = 100


def op(name: str, start: int, duration: int, **rest: Any) -> Host:
    """Return an operator (cpu_op)."""
    return Host(name, start, duration, HostKind.OPERATOR, **rest)


def runtime(name: str, start: int, duration: int, **rest: Any) -> Host:
    """Return a call of the CUDA (HIP, XPU) runtime."""
    return Host(name, start, duration, HostKind.RUNTIME, **rest)


def launch(start: int, duration: int, correlation: int, **rest: Any) -> Host:
    """Return a cudaLaunchKernel."""
    return runtime("cudaLaunchKernel", start, duration, correlation=correlation, **rest)


def annotation(name: str, start: int, duration: int, **rest: Any) -> Host:
    """Return a user annotation of the host (record_function)."""
    return Host(name, start, duration, HostKind.ANNOTATION, **rest)


def step(number: int, start: int, duration: int, **rest: Any) -> Host:
    """Return a ProfilerStep#number."""
    return annotation(f"ProfilerStep#{number}", start, duration, **rest)


def frame(name: str, start: int, duration: int, **rest: Any) -> Host:
    """Return a python_function."""
    return Host(name, start, duration, HostKind.PYTHON, **rest)


def loading(start: int, duration: int, iterator: str = "_SingleProcessDataLoaderIter", **rest: Any) -> Host:
    """Return the row of one ``next(iterator)`` of a DataLoader."""
    return op(f"enumerate(DataLoader)#{iterator}.__next__", start, duration, **rest)


def kernel(name: str, start: int, duration: int, **rest: Any) -> OnDevice:
    """Return a kernel."""
    return OnDevice(name, start, duration, DeviceKind.KERNEL, **rest)


def memcpy(direction: str, start: int, duration: int, memory: str = "Pageable -> Device", **rest: Any) -> OnDevice:
    """Return a copy, named as CUPTI names it: ``Memcpy HtoD (Pageable -> Device)``."""
    return OnDevice(f"Memcpy {direction} ({memory})", start, duration, DeviceKind.MEMCPY, **rest)


def memset(start: int, duration: int, **rest: Any) -> OnDevice:
    """Return a memory set."""
    return OnDevice("Memset (Device)", start, duration, DeviceKind.MEMSET, **rest)


@dataclass
class _Tables:
    """Dictionaries of a trace under construction."""

    texts: dict[str, int] = field(default_factory=dict)
    tracks: dict[Track, int] = field(default_factory=dict)
    collectives: list[Mapping[str, Any]] = field(default_factory=list)

    def text(self, value: str | None) -> int:
        return -1 if value is None else self.texts.setdefault(value, len(self.texts))

    def track(self, pid: int | str, tid: int | str) -> int:
        return self.tracks.setdefault(Track(pid, tid), len(self.tracks))

    def collective(self, value: Mapping[str, Any] | None) -> int:
        if value is None:
            return -1
        self.collectives.append(value)
        return len(self.collectives) - 1


def _column(values: Sequence[Any], dtype: Any) -> Any:
    return np.array(values, dtype=dtype)


def _host(rows: Sequence[Host], tables: _Tables) -> HostRows:
    rows = sorted(rows, key=lambda row: (row.start, -row.duration))
    return HostRows(
        start=_column([row.start for row in rows], np.int64),
        duration=_column([row.duration for row in rows], np.int64),
        name=_column([tables.text(row.name) for row in rows], np.int32),
        track=_column([tables.track(row.pid, row.thread) for row in rows], np.int32),
        kind=_column([row.kind for row in rows], np.int8),
        correlation=_column([row.correlation for row in rows], np.int64),
        external=_column([row.external for row in rows], np.int64),
        sequence=_column([row.sequence for row in rows], np.int64),
        forward_thread=_column([row.forward_thread for row in rows], np.int64),
        shapes=_column([tables.text(row.shapes) for row in rows], np.int32),
        types=_column([tables.text(row.types) for row in rows], np.int32),
        stack=_column([tables.text(row.stack) for row in rows], np.int32),
        python_id=_column([row.python_id for row in rows], np.int64),
        python_parent=_column([row.python_parent for row in rows], np.int64),
    )


def _device_track(row: OnDevice, tables: _Tables) -> int:
    return tables.track(row.device if row.pid is None else row.pid, row.stream if row.tid is None else row.tid)


def _device(rows: Sequence[OnDevice], tables: _Tables) -> DeviceRows:
    rows = sorted(rows, key=lambda row: (row.start, -row.duration))
    return DeviceRows(
        start=_column([row.start for row in rows], np.int64),
        duration=_column([row.duration for row in rows], np.int64),
        name=_column([tables.text(row.name) for row in rows], np.int32),
        track=_column([_device_track(row, tables) for row in rows], np.int32),
        kind=_column([row.kind for row in rows], np.int8),
        device=_column([row.device for row in rows], np.int32),
        stream=_column([row.stream for row in rows], np.int64),
        correlation=_column([row.correlation for row in rows], np.int64),
        external=_column([row.external for row in rows], np.int64),
        bytes=_column([row.bytes for row in rows], np.int64),
        blocks_per_sm=_column([row.blocks_per_sm for row in rows], np.float32),
        occupancy=_column([row.occupancy for row in rows], np.float32),
        graph=_column([row.graph for row in rows], np.int64),
        collective=_column([tables.collective(row.collective) for row in rows], np.int32),
    )


def _memory(rows: Sequence[MemoryEvent], tables: _Tables) -> MemoryRows:
    rows = sorted(rows, key=lambda row: row.time)
    return MemoryRows(
        time=_column([row.time for row in rows], np.int64),
        track=_column([tables.track(row.pid, row.thread) for row in rows], np.int32),
        device_type=_column([row.device_type for row in rows], np.int8),
        device=_column([row.device for row in rows], np.int16),
        address=_column([row.address for row in rows], np.uint64),
        bytes=_column([row.bytes for row in rows], np.int64),
        allocated=_column([row.allocated for row in rows], np.int64),
        reserved=_column([row.reserved for row in rows], np.int64),
    )


def _flows(rows: Sequence[FlowEnd], tables: _Tables) -> FlowRows:
    rows = sorted(rows, key=lambda row: row.time)
    return FlowRows(
        time=_column([row.time for row in rows], np.int64),
        track=_column([tables.track(row.pid, row.thread) for row in rows], np.int32),
        identifier=_column([row.identifier for row in rows], np.int64),
        kind=_column([row.kind for row in rows], np.int8),
        begins=_column([row.begins for row in rows], np.bool_),
    )


def make_facts(
    *, quality: Quality = "complete", warnings: tuple[TraceWarning, ...] = (), events: int = 0, **rest: Any
) -> TraceFacts:
    """Return the facts of a made-up file; what is not given is unknown."""
    known: dict[str, Any] = {
        "file": "made.json",
        "bytes": 0,
        "json_bytes": 0,
        "torch_version": None,
        "schema_version": None,
        "rank": None,
        "world_size": None,
        "devices": (),
        "base_time_ns": None,
        "distributed": {},
        "with_stack": None,
        "record_shapes": None,
        "profile_memory": None,
    }
    return TraceFacts(quality=quality, warnings=warnings, events=events, **{**known, **rest})


def make_trace(
    host: Sequence[Host] = (),
    device: Sequence[OnDevice] = (),
    memory: Sequence[MemoryEvent] = (),
    flows: Sequence[FlowEnd] = (),
    *,
    track_names: Mapping[tuple[int | str, int | str], Mapping[str, str]] | None = None,
    **facts: Any,
) -> Trace:
    """Return a trace of these rows.

    Parameters
    ----------
    track_names
        (pid, tid) -> any of process_name, process_labels, thread_name.
    facts
        What the file says of itself, see `make_facts`. Unless given, the devices are those of the device rows.

    """
    tables = _Tables()
    tables_of_rows = (_host(host, tables), _device(device, tables), _memory(memory, tables), _flows(flows, tables))
    names = track_names or {}
    tracks = [Track(lane.pid, lane.tid, **names.get((lane.pid, lane.tid), {})) for lane in tables.tracks]
    known = {row.device for row in device if row.device >= 0}
    facts.setdefault("devices", tuple(Device(ordinal, f"GPU {ordinal}") for ordinal in sorted(known)))
    facts.setdefault("events", len(host) + len(device) + len(memory) + len(flows))
    host_rows, device_rows, memory_rows, flow_rows = tables_of_rows
    return Trace(
        facts=make_facts(**facts),
        texts=list(tables.texts),
        tracks=tracks,
        collectives=tables.collectives,
        host=host_rows,
        device=device_rows,
        memory=memory_rows,
        flows=flow_rows,
    )
