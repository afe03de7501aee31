"""Compute every figure of one run's trace and diagnose it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tracelock.analysis import analyze
from tracelock.analysis import document as analysis_document
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import Recorded, read_recorded
from tracelock.diagnosis.thresholds import read_thresholds
from tracelock.errors import Problem, TracelockError
from tracelock.io import schema, write_json
from tracelock.program import run_program
from tracelock.trace import read_trace


def main() -> None:
    """Write analysis.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", type=Path, help="run.json; the trace and the samples lie beside it")
    source.add_argument("--trace", type=Path, help="a trace of which nothing else is known")
    parser.add_argument("--thresholds", type=json.loads, default={}, help="limits of the diagnosis, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    arguments = parser.parse_args()
    limits = read_thresholds(arguments.thresholds)
    recorded = read_recorded(arguments.run) if arguments.run else Recorded()
    trace = _trace_of(arguments.run, recorded) if arguments.run else arguments.trace
    if trace is None:
        write_json(arguments.output, {"schema": schema("no-analysis"), "reason": _why_no_trace(recorded)})
        return
    found = analyze(read_trace(trace))
    diagnosed: Diagnosed = diagnose(found, run=recorded.run, samples=recorded.samples, thresholds=limits)
    analysis_document.write(arguments.output, diagnosed)


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


if __name__ == "__main__":
    run_program(main)
