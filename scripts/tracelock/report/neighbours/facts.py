"""The runs of a study as other tools know runs: settings that vary, figures, a series over steps, files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from tracelock.errors import TracelockError
from tracelock.study.comparison import Case, Comparison
from tracelock.study.outcome import RunRow
from tracelock.study.overview import value_text
from tracelock.study.records import read_run

Parameter: TypeAlias = bool | float | str


@dataclass(frozen=True)
class Run:
    """One run. Metrics that are not known are absent; units stand in their names."""

    name: str  # environment/variant/repeat
    started_s: float  # since 1970
    parameters: dict[str, Parameter]
    metrics: dict[str, float]
    step_ms: tuple[float, ...]  # of the timed part, in order; without the profiler
    files: tuple[Path, ...]  # analysis.json, trace: what is there
    trace: Path | None
    notes: dict[str, str]


def runs_of(comparison: Comparison, folder: Path) -> list[Run]:
    """Return the runs of the study whose results lie in `folder`, in the order of the comparison."""
    cases = {case.key: case for case in comparison.cases}
    return [_run(comparison, cases[(row.environment, row.variant)], row, folder) for row in comparison.runs]


def _run(comparison: Comparison, case: Case, row: RunRow, folder: Path) -> Run:
    place = folder / "runs" / row.environment / row.variant / str(row.repeat)
    trace = place / "trace.json.gz"
    several = len(comparison.environments) > 1
    parameters = {name: _plain(value) for name, value in case.factors.items()}
    if several:
        parameters["environment"] = row.environment
    files = tuple(path for path in (place / "analysis.json", place / "run.json") if path.is_file())
    return Run(
        name=f"{row.environment}/{row.variant}/{row.repeat}",
        started_s=_seconds(row.started),
        parameters=parameters,
        metrics=_metrics(row),
        step_ms=_steps(place / "run.json"),
        files=files,
        trace=trace if trace.is_file() else None,
        notes={
            "host": row.host,
            "device": row.device_name or row.device,
            "torch": row.torch,
            "finding": row.finding or "",
            "unlocked": "yes" if row.unlocked else "no" if row.unlocked is False else "not checked",
            "disturbed": row.disturbed or "",
        },
    )


def _metrics(row: RunRow) -> dict[str, float]:
    found = {
        "step_time_ms": row.step_us / 1000,
        "throughput_samples_per_s": row.throughput_per_s,
        "loading_share": row.loading_share,
        "profiler_overhead_ratio": row.profiler_overhead,
        "peak_rss_bytes": row.peak_rss_bytes,
        "peak_allocated_bytes": row.peak_allocated_bytes,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _steps(file: Path) -> tuple[float, ...]:
    try:
        return tuple(value / 1000 for value in read_run(file).timed.step_us)
    except TracelockError:
        return ()


def _plain(value: object) -> Parameter:
    """Return a setting as tools can hold it: what is no number, truth or text becomes text."""
    if isinstance(value, bool | str):
        return value
    return float(value) if isinstance(value, int | float) else value_text(value)


def _seconds(started: str) -> float:
    try:
        return datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
