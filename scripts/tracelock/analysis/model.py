"""All figures that are computed from one trace: the document of ``tracelock analyze --json``.

Times are microseconds as floats with nanosecond resolution. A figure that cannot be known is None, never 0, and
`Analysis.unknown` says why by its key path. The definitions are those of docs/definitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracelock.analysis.costs import Costs
from tracelock.analysis.sections import (
    Collectives,
    Launches,
    Loading,
    Memory,
    MemoryPoint,
    Threads,
)
from tracelock.analysis.work import Work
from tracelock.trace.columns import TraceWarning

SCHEMA_VERSION = 1

__all__ = [
    "SCHEMA_VERSION",
    "Analysis",
    "Breakdown",
    "Collectives",
    "Costs",
    "DeviceName",
    "Gpu",
    "HostIdle",
    "IdleCauses",
    "Kernel",
    "KernelOfOperator",
    "Launches",
    "Loading",
    "Memory",
    "MemoryPoint",
    "Operator",
    "OperatorGroup",
    "Step",
    "StepSummary",
    "TensorCores",
    "Threads",
    "TraceSection",
    "Transfer",
    "Work",
]


@dataclass(frozen=True)
class DeviceName:
    """An accelerator of the trace."""

    id: int
    name: str


@dataclass(frozen=True)
class TraceSection:
    """Which file this is, and how far it can be trusted."""

    file: str
    bytes: int
    events: int
    quality: str
    warnings: tuple[TraceWarning, ...]
    torch_version: str | None
    rank: int | None
    world_size: int | None
    devices: tuple[DeviceName, ...]
    only_step: str | None = None  # the step that all figures are of, where one was chosen


@dataclass(frozen=True)
class Breakdown:
    """Exclusive parts of a step, by precedence in this order; they sum to the step. Microseconds."""

    kernel: float
    memcpy: float
    memset: float
    communication: float
    runtime: float
    dataloader: float
    cpu_op: float
    other: float


@dataclass(frozen=True)
class Step:
    """One training iteration."""

    name: str
    start_us: float  # since the first event of the trace
    duration_us: float
    breakdown_us: Breakdown
    complete: bool = True  # False where the recording may have ended inside it
    exposed_communication_us: float | None = None  # a device in collectives and not computing; None without devices


@dataclass(frozen=True)
class StepSummary:
    """The complete steps together. `source` is "ProfilerStep" or "whole trace" (no steps were marked)."""

    count: int  # complete steps: what the figures are means of
    mean_us: float | None
    median_us: float | None
    breakdown_us: Breakdown | None
    dataloader_share: float | None  # of the mean step, 0..1
    source: str
    incomplete: int = 0  # steps that the recording may have ended in: in `steps`, but in no mean


@dataclass(frozen=True)
class IdleCauses:
    """The device's idle time, divided by what kept it waiting; the parts sum to idle_us. Microseconds."""

    dataloader: float
    host: float
    synchronization: float
    launch: float
    communication: float
    unattributed: float


@dataclass(frozen=True)
class HostIdle:
    """What the host did while the device waited for it, named by the innermost operator, region or frame."""

    name: str
    time_us: float


@dataclass(frozen=True)
class Gpu:
    """One accelerator from the start of the first complete step to the end of the last."""

    id: int
    span_us: float
    busy_us: float
    idle_us: float
    compute_us: float
    communication_us: float
    memory_us: float
    exposed_communication_us: float
    utilization: float | None
    sm_efficiency: float | None
    occupancy_pct: float | None
    idle_causes_us: IdleCauses | None
    window_us: float | None = None  # what utilization and sm_efficiency are parts of
    linked_share: float | None = None  # of the device's time: work whose launch is in the file, 0..1
    host_idle: tuple[HostIdle, ...] = ()  # the host's part of the idle time by name, largest first
    tensor_core_share: float | None = None  # of the kernels' time, 0..1


@dataclass(frozen=True)
class Operator:
    """All calls of one name: an operator, a labelled region or a call of the runtime."""

    name: str
    calls: int
    self_cpu_us: float
    total_cpu_us: float
    self_device_us: float | None
    total_device_us: float | None
    calls_per_step: float | None = None
    allocated_bytes: int | None = None  # by this operator itself, frees not subtracted


@dataclass(frozen=True)
class OperatorGroup:
    """The calls of one operator with the same input shapes, or from the same place in the code."""

    name: str
    shapes: str | None  # Input Dims as the profiler wrote them: JSON
    stack: str | None  # frames, innermost first, one a line
    calls: int
    self_cpu_us: float
    total_cpu_us: float
    self_device_us: float | None
    total_device_us: float | None


@dataclass(frozen=True)
class Kernel:
    """All launches of one kernel name."""

    name: str
    calls: int
    total_us: float
    mean_us: float
    min_us: float
    max_us: float
    tensor_cores: bool | None = None  # None where names of this kind do not say


@dataclass(frozen=True)
class KernelOfOperator:
    """All launches of one kernel name by one operator."""

    kernel: str
    operator: str | None  # None where the launch is not in the file or in no operator
    calls: int
    total_us: float


@dataclass(frozen=True)
class TensorCores:
    """Parts of the kernels' time (their sum), 0..1."""

    used_share: float | None  # None where the names of too much of the time do not say (untold_share)
    untold_share: float  # kernels whose names do not say
    eligible_share: float | None  # launched by operators that could; None where no kernel is linked to its operator
    used_share_of_eligible: float | None


@dataclass(frozen=True)
class Transfer:
    """Copies and sets of one direction and kind of host memory."""

    kind: str  # "HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "Memset"
    memory: str | None  # "pageable" or "pinned", None where the name does not say
    calls: int
    bytes: int | None
    total_us: float
    bandwidth_gb_per_s: float | None = None  # 1e9 bytes a second, over the time of the copies themselves


@dataclass(frozen=True)
class Analysis:
    """The figures of one trace."""

    trace: TraceSection
    steps: tuple[Step, ...]
    step: StepSummary
    gpus: tuple[Gpu, ...]
    operators: tuple[Operator, ...]
    kernels: tuple[Kernel, ...]
    transfers: tuple[Transfer, ...]
    memory: tuple[Memory, ...]
    unknown: dict[str, str] = field(default_factory=dict)
    loading: Loading | None = None  # None without a DataLoader in the trace
    launches: tuple[Launches, ...] = ()
    collectives: tuple[Collectives, ...] = ()
    threads: Threads | None = None
    labels: tuple[Operator, ...] = ()  # regions labelled by record_function, of the user or of PyTorch
    runtime: tuple[Operator, ...] = ()  # calls of the device's runtime and driver
    operators_by_shape: tuple[OperatorGroup, ...] = ()  # empty where no shapes were recorded
    operators_by_stack: tuple[OperatorGroup, ...] = ()  # empty where no stacks were recorded
    kernels_by_operator: tuple[KernelOfOperator, ...] = ()
    tensor_cores: TensorCores | None = None  # None without kernels
    costs: Costs | None = None  # None where no step is complete
    work: Work | None = None  # None where no step is marked and complete
    left_out: dict[str, int] = field(default_factory=dict)  # rows that a table above does not list: the cheapest ones

    def _repr_html_(self) -> str:
        """Return how a notebook shows it."""
        from tracelock.analysis.notebook import analysis_html

        return analysis_html(self)
