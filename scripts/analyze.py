"""Compute every figure of one run's trace and diagnose it."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from tracelock.analysis import analyze
from tracelock.analysis import document as analysis_document
from tracelock.diagnosis import diagnose
from tracelock.diagnosis.thresholds import Thresholds, read_thresholds
from tracelock.io import read_json
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
    if arguments.run is None:
        diagnosed = diagnose(analyze(read_trace(arguments.trace)), thresholds=limits)
    else:
        diagnosed = of_run(arguments.run, limits)
    analysis_document.write(arguments.output, diagnosed)


def of_run(path: Path, limits: Thresholds) -> Any:
    """Return the diagnosis of a run from its folder."""
    run = read_json(path, "run")
    trace = read_trace(path.parent / run["profiled"]["trace"])
    samples = read_samples(path.parent / run["samples"]["file"])
    return diagnose(analyze(trace), run=run, samples=samples, thresholds=limits)


def read_samples(path: Path) -> dict[str, list[float | None]]:
    """Return the columns of samples.csv; an empty cell is None, a list of processes their sum."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = list(rows[0]) if rows else []
    return {name: [_number(row[name]) for row in rows] for name in names}


def _number(cell: str) -> float | None:
    """Return a cell's number: the sum where it lists one value a process, None where it is empty."""
    return sum(map(float, cell.split())) if cell.strip() else None


if __name__ == "__main__":
    run_program(main)
