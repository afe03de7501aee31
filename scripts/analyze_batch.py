"""Analyse every run of a batch: writes analysis.json beside each run.json."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tracelock.io import read_json, schema, write_json
from tracelock.program import run_program
from tracelock.study.run_analysis import analyze_run
from tracelock.study.traces import after_analysis


def main() -> None:
    """Write each analysis.json, and last the file that says that all are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=Path, required=True, help="what run_batch.py wrote")
    parser.add_argument("--runs", type=Path, required=True, metavar="DIR", help="folder runs/ of the study or round")
    parser.add_argument("--thresholds", type=json.loads, default={}, help="limits of the diagnosis, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="file that says that all are there")
    given = parser.parse_args()
    batch = read_json(given.batch, "batch")
    folders = [given.runs / batch["environment"] / run["variant"] / str(run["repeat"]) for run in batch["runs"]]
    for folder in folders:
        analyze_run(folder / "run.json", None, given.thresholds, folder / "analysis.json")
        after_analysis(folder / "run.json")
    write_json(given.output, {"schema": schema("analysed"), "runs": len(folders)})


if __name__ == "__main__":
    run_program(main)
