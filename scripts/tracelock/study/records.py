"""The parts of plan.json, run.json and remedies.json that a comparison reads, typed.

Keys that others need, or that a later version added, are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tracelock.errors import Problem, TracelockError
from tracelock.io import read_json

RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class PlannedVariant:
    """A variant. `overrides` is what distinguishes it from the study's others, None where a remedy added it."""

    id: str
    settings: dict[str, Any]
    digest: str
    overrides: dict[str, Any] | None = None


@dataclass(frozen=True)
class PlannedRun:
    """One measurement of the plan."""

    environment: str
    variant: str
    repeat: int
    order: int


@dataclass(frozen=True)
class PlanFile:
    """``tracelock/plan/1``."""

    experiment: str
    digest: str
    seed: int
    repeats: int
    baseline: str
    environments: list[str]
    variants: list[PlannedVariant]
    runs: list[PlannedRun]
    description: str = ""
    study_file: str = ""
    workload: str = ""
    device: str = ""
    timing: dict[str, Any] = field(default_factory=dict)
    profiler: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    factors: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """``tracelock/spec/1``: what one variant of one environment was asked to run with."""

    variant: str
    settings: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class RunDevice:
    """What a run computed on."""

    type: str
    index: int | None = None
    uuid: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Timed:
    """The part of a run without the profiler. Microseconds."""

    steps: int
    duration_us: float
    step_us: list[float]
    loading_us: list[float] | None = None
    device_step_us: list[float] | None = None
    samples: float | None = None
    throughput_per_s: float | None = None
    stopped_by: str | None = None


@dataclass(frozen=True)
class Profiled:
    """The recorded part of a run. `overhead_ratio` is its mean step over the mean step without the profiler."""

    steps: int
    step_us: list[float] = field(default_factory=list)
    overhead_ratio: float | None = None
    trace: str | None = None
    trace_bytes: int | None = None
    stopped_by: str | None = None


@dataclass(frozen=True)
class PeakMemory:
    """Highest memory use of a run. Bytes."""

    peak_rss_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None


@dataclass(frozen=True)
class RunFile:
    """``tracelock/run/1``."""

    environment: str
    variant: str
    repeat: int
    digest: str
    started: str
    host: str
    device: RunDevice
    timed: Timed
    profiled: Profiled | None = None
    memory: PeakMemory = PeakMemory()
    ended: str = ""
    python: str = ""
    torch: str = ""
    threads: Any = None
    unknown: dict[str, str] = field(default_factory=dict)
    warnings: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Edge:
    """One step on the path from the baseline to the best variant: what was changed, why, and what it brought."""

    source: str
    target: str
    finding: str | None
    settings: dict[str, Any]
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: str | None = None


@dataclass(frozen=True)
class RemedyPath:
    """What the tested remedies came to (``tracelock/remedies/1``)."""

    path: tuple[Edge, ...]
    best: str | None
    best_settings: dict[str, Any]


def read_plan(folder: Path) -> PlanFile:
    """Read ``plan.json`` of a results folder.

    Raises
    ------
    TracelockError
        If the folder holds no plan, or it is not sound.
    """
    path = folder / "plan.json"
    if not path.is_file():
        raise TracelockError(
            Problem(str(folder), "holds no plan.json, so it is no results folder", "give results/<experiment>")
        )
    return _read(path, "plan", PlanFile)


def read_run(path: Path) -> RunFile:
    """Read a ``run.json``."""
    return _read(path, "run", RunFile)


def read_spec(path: Path) -> Spec:
    """Read a ``spec.json``."""
    return _read(path, "spec", Spec)


def read_remedies(folder: Path) -> RemedyPath | None:
    """Read ``remedies.json`` of a results folder, None where remedies were not tested."""
    path = folder / "remedies.json"
    if not path.is_file():
        return None
    document = read_json(path, "remedies")
    edges = [{**edge, "source": edge.get("from"), "target": edge.get("to")} for edge in document.get("path", [])]
    body = {
        "path": edges,
        "best": document.get("best"),
        "best_settings": document.get("best_settings") or {},
    }
    return _convert(path, body, RemedyPath)


def _read(path: Path, kind: str, record: type[RecordT]) -> RecordT:
    return _convert(path, read_json(path, kind), record)


def _convert(path: Path, value: dict[str, Any], record: type[RecordT]) -> RecordT:
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError as error:
        raise TracelockError(Problem(str(path), str(error).replace("`$.", "`").replace(" - at ", " at "))) from None
