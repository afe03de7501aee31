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
    """A variant. `overrides` is what distinguishes it from the study's others, None where the plan does not say."""

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
    """Highest memory use of a run. Bytes. `peak_tree_rss_bytes` is that of the process and its workers together."""

    peak_rss_bytes: int | None = None
    peak_tree_rss_bytes: int | None = None
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
    cluster: dict[str, Any] | None = None  # the batch system's job, where one made the run
    unknown: dict[str, str] = field(default_factory=dict)
    warnings: list[Any] = field(default_factory=list)

    @property
    def node(self) -> str | None:
        """The node of the cluster that the run was made on; None where no batch system made it."""
        node = (self.cluster or {}).get("node")
        return None if node is None else str(node)


@dataclass(frozen=True)
class Edge:
    """A remedy that was run: what was changed in `source`, why, and what it brought."""

    source: str
    target: str
    finding: str | None
    settings: dict[str, Any]
    ratio: float | None = None  # time of the target over time of the source, both measured in the same round
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: str | None = None
    why: str = ""
    expect: str = ""
    kind: str = "remedy"  # or "factor": a variant of the study itself, which no finding proposed
    metric: str | None = None

    @property
    def unclear(self) -> bool:
        """Whether more runs would be needed to say what it brought."""
        return (self.verdict or "").startswith("unclear")


@dataclass(frozen=True)
class Round:
    """The remedies that were tried from one variant."""

    number: int
    source: str | None
    tried: tuple[Edge, ...]
    stopped: str | None


@dataclass(frozen=True)
class Left:
    """What holds the best variant back: its main finding, and the first advice against it that was not tried."""

    finding: str
    title: str
    advice: str | None = None


@dataclass(frozen=True)
class RemedyPath:
    """What the tested remedies came to (``tracelock/remedies/1``): the path from the baseline to the best."""

    path: tuple[Edge, ...]
    rounds: tuple[Round, ...]
    best: str | None
    best_settings: dict[str, Any]
    best_yaml: str = ""
    stopped: str = ""
    left: Left | None = None


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


def read_waves(folder: Path) -> list[PlannedRun]:
    """Read the runs that were made beside the plan: ``more/<n>.json``."""
    return [
        PlannedRun(run["environment"], run["variant"], run["repeat"], run["order"])
        for file in sorted((folder / "more").glob("*.json"))
        for run in read_json(file, "more")["runs"]
    ]


def read_run(path: Path) -> RunFile:
    """Read a ``run.json``."""
    return _read(path, "run", RunFile)


def read_remedies(folder: Path) -> RemedyPath | None:
    """Read ``remedies.json`` of a results folder, None where remedies were not tested."""
    path = folder / "remedies.json"
    if not path.is_file():
        return None
    document = read_json(path, "remedies")
    rounds = [_round(entry) for entry in document.get("rounds") or ()]
    body = {**document, "path": [_edge(edge, None) for edge in document.get("path") or ()], "rounds": rounds}
    return _convert(path, {**body, "best_settings": document.get("best_settings") or {}}, RemedyPath)


def _round(entry: dict[str, Any]) -> dict[str, Any]:
    source = entry.get("from")
    tried = [_edge(edge, source) for edge in entry.get("tried") or ()]
    return {"number": entry.get("round"), "source": source, "tried": tried, "stopped": entry.get("stopped")}


def _edge(edge: dict[str, Any], source: str | None) -> dict[str, Any]:
    return {**edge, "source": edge.get("from", source), "target": edge.get("to")}


def _read(path: Path, kind: str, record: type[RecordT]) -> RecordT:
    return _convert(path, read_json(path, kind), record)


def _convert(path: Path, value: dict[str, Any], record: type[RecordT]) -> RecordT:
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError as error:
        raise TracelockError(Problem(str(path), str(error).replace("`$.", "`").replace(" - at ", " at "))) from None
