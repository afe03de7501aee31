"""Compute every figure of one run's trace and diagnose it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tracelock.program import run_program
from tracelock.study.run_analysis import analyze_run
from tracelock.study.traces import after_analysis


def main() -> None:
    """Write analysis.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", type=Path, help="run.json; the trace and the samples lie beside it")
    source.add_argument("--trace", type=Path, help="a trace of which nothing else is known")
    parser.add_argument("--thresholds", type=json.loads, default={}, help="limits of the diagnosis, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    arguments = parser.parse_args()
    analyze_run(arguments.run, arguments.trace, arguments.thresholds, arguments.output)
    if arguments.run:
        after_analysis(arguments.run)


if __name__ == "__main__":
    run_program(main)
