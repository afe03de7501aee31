"""From a run's files to its analysis.json: the figures of its trace and their diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracelock.analysis import analyze
from tracelock.analysis import document as analysis_document
from tracelock.analysis.model import Analysis
from tracelock.diagnosis import diagnose
from tracelock.diagnosis.recorded import Recorded, read_recorded
from tracelock.diagnosis.thresholds import Thresholds, read_thresholds
from tracelock.errors import Problem, TracelockError
from tracelock.io import schema, write_json
from tracelock.study.taken import kept_analysis
from tracelock.trace import read_trace


def analyze_run(run: Path | None, trace: Path | None, thresholds: Mapping[str, Any], output: Path) -> None:
    """Write the analysis of a run, or of a trace of which nothing else is known, to `output`.

    A run whose trace was taken away for room keeps its figures. One that kept no trace leaves a document
    ``tracelock/no-analysis/1`` with the reason.

    Raises
    ------
    TracelockError
        If a file cannot be read or is not sound, or a threshold is wrong.
    """
    limits = read_thresholds(dict(thresholds))
    recorded = read_recorded(run) if run else Recorded()
    kept = kept_analysis(run) if run else None
    if kept is not None:  # the figures that were found before the trace was taken away; the diagnosis is made anew
        _diagnose(analysis_document.read(kept, Analysis), recorded, limits, output)
        return
    source = _trace_of(run, recorded) if run else trace
    if source is None or (run and not source.exists()):
        reason = f"{source.name} is not there any more" if source else _why_no_trace(recorded)
        write_json(output, {"schema": schema("no-analysis"), "reason": reason})
        return
    _diagnose(analyze(read_trace(source)), recorded, limits, output)


def _diagnose(found: Analysis, recorded: Recorded, limits: Thresholds, output: Path) -> None:
    diagnosed = diagnose(found, run=recorded.run, samples=recorded.samples, thresholds=limits)
    analysis_document.write(output, diagnosed)


def _trace_of(path: Path, recorded: Recorded) -> Path | None:
    """Return the trace of a run, None where a limit kept it from being written."""
    name = _profiled(path, recorded).get("trace")
    return path.parent / str(name) if name else None


def _profiled(path: Path, recorded: Recorded) -> dict[str, object]:
    profiled = (recorded.run or {}).get("profiled")
    if not isinstance(profiled, dict):
        raise TracelockError(Problem(f"{path}: profiled", f"is {profiled!r}, expected what the profiler recorded"))
    return profiled


def _why_no_trace(recorded: Recorded) -> str:
    stopped = (recorded.run or {}).get("profiled", {}).get("stopped_by")
    return f"the run kept no trace: {stopped or 'nothing was recorded'}"
