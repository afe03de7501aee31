"""The columns that a trace becomes: what every analysis starts from.

A trace is four tables (host rows, device rows, memory records, flow ends), three dictionaries (texts, tracks,
collective descriptions) and a page of facts about the file. Nothing here knows what a step is.

Times are int64 nanoseconds on the clock of the file; an absent number is -1 (integers) or NaN (floats); an
absent text is -1 in its column of ids. Rows of a table are sorted by start, then longest first; of host rows with
one start and end the outermost stands first: frame, annotation, operator, call of the runtime, call of the driver,
and within these by Python id or External id, which grow as rows are entered.

A column that no row has takes no memory (it is one value, broadcast) and cannot be written to; neither can the
columns of a large trace, which are mapped from a file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Int64: TypeAlias = npt.NDArray[np.int64]
Int32: TypeAlias = npt.NDArray[np.int32]
Int16: TypeAlias = npt.NDArray[np.int16]
Int8: TypeAlias = npt.NDArray[np.int8]
UInt64: TypeAlias = npt.NDArray[np.uint64]
Float32: TypeAlias = npt.NDArray[np.float32]

Quality: TypeAlias = Literal["complete", "salvaged", "partial"]


class HostKind(enum.IntEnum):
    """What a host row is, whatever its category was called in the year of the trace."""

    OPERATOR = 0  # cpu_op, Operator
    RUNTIME = 1  # cuda_runtime, Runtime, hip_runtime, xpu_runtime, mtia_runtime, privateuse1_runtime
    DRIVER = 2  # cuda_driver
    ANNOTATION = 3  # user_annotation
    PYTHON = 4  # python_function
    OVERHEAD = 5  # overhead (the profiler's own work)
    OTHER = 6  # any other complete event on a host thread


class DeviceKind(enum.IntEnum):
    """What a device row is. Only KERNEL, MEMCPY and MEMSET are ever busy time."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    SYNC = 3  # cuda_sync
    ANNOTATION = 4  # gpu_user_annotation


class FlowKind(enum.IntEnum):
    """Which arrow a flow event belongs to."""

    LAUNCH = 0  # ac2g
    FORWARD_BACKWARD = 1  # fwdbwd
    OTHER = 2


@dataclass(frozen=True)
class Track:
    """A lane of the file: (pid, tid) as written there, which may be texts (``"Spans"``, ``""``)."""

    pid: int | str
    tid: int | str
    process_name: str | None = None
    process_labels: str | None = None
    thread_name: str | None = None


@dataclass(frozen=True)
class HostRows:
    """Complete events of host threads, shape (n,) each."""

    start: Int64  # ns
    duration: Int64  # ns
    name: Int32  # id in Trace.texts
    track: Int32  # id in Trace.tracks
    kind: Int8  # HostKind
    correlation: Int64  # of a runtime or driver call; -1 without
    external: Int64  # External id; -1 without
    sequence: Int64  # Sequence number (joins forward and backward operators); -1 without
    forward_thread: Int64  # Fwd thread id; -1 without
    shapes: Int32  # id in Trace.texts of the compact JSON of Input Dims; -1 without
    types: Int32  # id in Trace.texts of the compact JSON of Input type; -1 without
    stack: Int32  # id in Trace.texts of Call stack; -1 without
    python_id: Int64  # Python id of a python_function row; -1 without
    python_parent: Int64  # Python parent id; -1 without

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class DeviceRows:
    """Complete events of devices, shape (n,) each."""

    start: Int64  # ns
    duration: Int64  # ns
    name: Int32  # id in Trace.texts
    track: Int32  # id in Trace.tracks
    kind: Int8  # DeviceKind
    device: Int32  # ordinal; -1 unknown
    stream: Int64  # -1 where the file names none (the lane is then the track)
    correlation: Int64  # -1 without; 0 and -1 never join
    external: Int64  # External id; -1 without
    bytes: Int64  # of a copy or set; -1 without
    blocks_per_sm: Float32  # NaN without
    occupancy: Float32  # est. achieved occupancy %, NaN without
    graph: Int64  # graph id where the file has one; -1 without
    collective: Int32  # id in Trace.collectives; -1 without

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class MemoryRows:
    """``[memory]`` instants, shape (n,) each."""

    time: Int64  # ns
    track: Int32
    device_type: Int8  # c10::DeviceType: 0 CPU, 1 CUDA, ...; -1 unknown
    device: Int16  # ordinal; -1 for the CPU or unknown
    address: UInt64  # 0 without (torch < 1.10)
    bytes: Int64  # > 0 allocation, < 0 free
    allocated: Int64  # Total Allocated, bytes; -1 without
    reserved: Int64  # Total Reserved, bytes; -1 without

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class FlowRows:
    """Ends of flow arrows, shape (n,) each."""

    time: Int64  # ns
    track: Int32
    identifier: Int64
    kind: Int8  # FlowKind
    begins: npt.NDArray[np.bool_]  # True for ph "s", False for "f" and "t"

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class TraceWarning:
    """Something in the file that was excluded, mended or not understood, and how often."""

    code: str  # stable, kebab-case: "negative-duration"
    count: int
    message: str


@dataclass(frozen=True)
class Device:
    """An accelerator that the file describes."""

    id: int
    name: str
    properties: Mapping[str, Any] = field(default_factory=dict)  # as written: totalGlobalMem, numSms, ...


@dataclass(frozen=True)
class TraceFacts:
    """What the file says of itself, apart from its events."""

    file: str  # name as given
    bytes: int  # size on disk
    json_bytes: int  # size uncompressed, as far as it was read
    events: int  # members of traceEvents seen, whatever they were
    quality: Quality
    warnings: tuple[TraceWarning, ...]
    torch_version: str | None
    schema_version: int | None
    rank: int | None
    world_size: int | None
    devices: tuple[Device, ...]
    base_time_ns: int | None  # baseTimeNanoseconds: add to a time to get nanoseconds of the epoch
    distributed: Mapping[str, Any]  # distributedInfo as written
    with_stack: bool | None
    record_shapes: bool | None
    profile_memory: bool | None
    unused: Mapping[str, int] = field(default_factory=dict)  # events in no table, by phase: marks, names, counters
    windows: tuple[tuple[int, int], ...] = ()  # start and end of the profiler's own spans (category Trace), ns


@dataclass(frozen=True)
class Trace:
    """One trace file as columns."""

    facts: TraceFacts
    texts: Sequence[str]  # each different text once; ids in the columns are positions here
    tracks: Sequence[Track]
    collectives: Sequence[Mapping[str, Any]]  # args of collectives: "Collective name", "In msg nelems", ...
    host: HostRows
    device: DeviceRows
    memory: MemoryRows
    flows: FlowRows
    path: Path | None = None
