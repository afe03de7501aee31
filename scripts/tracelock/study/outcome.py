"""What became of each run of a study, and of the environments that the runs were made in.

Times are microseconds, memory is bytes, shares are fractions. A figure that cannot be known is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Environment:
    """An environment that the runs were made in. `unlocked`: True if it differed from its lock, None if unchecked."""

    name: str
    unlocked: bool | None
    lock_digest: str | None
    note: str = ""


@dataclass(frozen=True)
class RunRow:
    """One run."""

    environment: str
    variant: str
    repeat: int
    unlocked: bool | None
    started: str
    host: str
    device: str
    device_name: str | None
    python: str
    torch: str
    threads: int | None
    steps: int
    step_us: float  # duration of the timed part / its steps
    relative: float | None  # step_us / the median of its case
    median_step_us: float | None
    samples: float | None
    throughput_per_s: float | None
    loading_share: float | None  # of the timed part, spent waiting in next(loader)
    profiled_step_us: float | None
    profiler_overhead: float | None  # mean profiled step / mean timed step
    dataloader_share: float | None  # of the profiled steps, from the trace
    peak_rss_bytes: int | None
    peak_tree_rss_bytes: int | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    stopped_by: str | None
    trace: str | None
    trace_bytes: int | None
    trace_quality: str | None
    finding: str | None
    digest: str
    node: str | None = None  # of the cluster, where a job of a batch system made the run
    warnings: tuple[str, ...] = ()
    unknown: dict[str, str] = field(default_factory=dict)
    disturbed: str | None = None  # what was sampled beside it and disturbed it


@dataclass(frozen=True)
class MissingRun:
    """A run that was planned and has no result."""

    environment: str
    variant: str
    repeat: int
    unlocked: bool | None
    reason: str
    log: str | None


@dataclass(frozen=True)
class ExcludedRun:
    """A result that is there and was not used."""

    environment: str
    variant: str
    repeat: int
    unlocked: bool | None
    reason: str
