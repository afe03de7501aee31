"""Parts of an analysis that answer one question each: memory, loading, launches, collectives, threads.

Dataclasses alone, so that whoever reads a document needs none of the arithmetic. Times are microseconds as floats
with nanosecond resolution. The definitions are those of docs/definitions-more.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryPoint:
    """One point of a memory curve."""

    time_us: float
    allocated_bytes: int
    reserved_bytes: int | None


@dataclass(frozen=True)
class MemoryOwner:
    """Memory that one operator allocated itself (it was the innermost one on its thread)."""

    name: str  # "" for memory that was allocated outside of any operator
    allocations: int
    allocated_bytes: int  # frees not subtracted
    kept_bytes: int | None  # allocated in one of the steps and still held at the end of the last one
    kept_steps: int | None  # in how many different steps the kept memory was allocated
    caller: str | None = None  # of aten::empty and its kin: the innermost operator around them that is none of them


@dataclass(frozen=True)
class Sawtooth:
    """How the allocated level goes up and down inside the steps; means over the steps."""

    allocations_per_step: float
    small_allocations_per_step: float  # below 1 MiB, PyTorch's limit of a small block
    teeth_per_step: float  # an allocation that is followed at once by a free
    mean_tooth_bytes: float | None
    hills: float | None  # rises and falls, in units of one rise and fall over the whole height: 1 is a single hill


@dataclass(frozen=True)
class Memory:
    """The allocator of one device (or of the host)."""

    device: str  # "cpu", "cuda:0"
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    growth_bytes_per_step: float | None
    curve: tuple[MemoryPoint, ...] = ()
    growth_interval: tuple[float, float] | None = None  # 95 %
    step_levels: tuple[int, ...] = ()  # bytes at the start of each step and the end of the last; from 0 if no totals
    capacity_bytes: int | None = None
    sawtooth: Sawtooth | None = None
    owners: tuple[MemoryOwner, ...] = ()
    allocator_calls_per_step: float | None = None  # cudaMalloc, cudaFree and the like
    allocator_us_per_step: float | None = None


@dataclass(frozen=True)
class LoadingWait:
    """What one step waited for its data."""

    step: str
    calls: int
    wait_us: float


@dataclass(frozen=True)
class LoadingOperator:
    """An operator that ran inside the loader, in the process of the trace."""

    name: str
    calls: int
    self_us: float


@dataclass(frozen=True)
class Loading:
    """The data loader as the training loop saw it."""

    mode: str | None  # "main process", "workers", "both"; None for an iterator that does not tell
    iterators: tuple[str, ...]
    calls: int
    wait_us: float  # union of the calls over the whole trace
    share: float | None  # of the host time of the steps, 0..1
    waits: tuple[LoadingWait, ...]
    operators: tuple[LoadingOperator, ...]  # most expensive first
    outside_operators_us: float  # of wait_us: Python, decoding, waiting for a worker


@dataclass(frozen=True)
class Queue:
    """Work launched for one stream that had not begun yet."""

    stream: int
    longest: int
    mean: float | None  # over time, from the first launch to the start of the last row


@dataclass(frozen=True)
class Launches:
    """Launch calls and the device rows that they made, for one device."""

    device: int
    linked: int  # device rows with a known launch
    unlinked: int
    graph_rows: int  # of the linked ones: by a graph launch, which has many
    call_us: float | None  # mean duration of a launch call
    delay_mean_us: float | None  # from the end of the call to the start of the row, 0 where it began before
    delay_median_us: float | None
    delay_p95_us: float | None
    delay_max_us: float | None
    free_start_us: float | None  # median delay of the rows that found their stream free: the price of a launch
    short: int  # device rows shorter than their launch call
    tiny: int  # device rows shorter than 10 µs, whatever their launch took
    slow_calls: int  # longer than 50 µs
    slow_starts: int  # delay beyond 100 µs
    queues: tuple[Queue, ...]


@dataclass(frozen=True)
class Collective:
    """All calls of one collective with one group size and data type."""

    name: str  # "all_reduce", "all_to_all", ...
    dtype: str | None
    group_size: int | None
    calls: int
    bytes: int | None  # message size as nccl-tests counts it, summed over the calls
    total_us: float
    min_us: float
    max_us: float
    algorithm_bandwidth: float | None  # bytes per second over all calls, waiting for other ranks included
    bus_bandwidth: float | None


@dataclass(frozen=True)
class Collectives:
    """Communication of one device, or of the host's threads (device -1: gloo)."""

    device: int
    union_us: float
    overlapped_us: float | None  # hidden behind computation
    overlap_share: float | None  # overlapped_us / union_us
    items: tuple[Collective, ...]


@dataclass(frozen=True)
class Thread:
    """A host thread over the window of all steps."""

    name: str  # "pid/tid", and what the file calls it
    role: str  # "main", "backward", "communication", "other"
    busy_us: float  # union of its operators, runtime calls, collectives and waits for data
    share: float  # of the window
    operators: int


@dataclass(frozen=True)
class MainThread:
    """The main thread's time over the window of all steps, exclusive parts; they sum to the window. Microseconds."""

    dataloader: float
    communication: float  # collectives of its own, and nothing of its own while a communication thread worked
    runtime: float
    operators: float
    backward: float  # nothing of its own while a backward thread worked
    other: float  # Python, waiting


@dataclass(frozen=True)
class Threads:
    """The threads of the process."""

    window_us: float
    main_us: MainThread
    items: tuple[Thread, ...]  # busiest first
    concurrency: float | None  # mean number of busy threads while at least one is
    most_at_once: int
    slowdown: float | None  # own time of repeated operators (same shapes) over what their fast calls (p10) would take
