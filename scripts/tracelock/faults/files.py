"""Write what a simulated run leaves behind, in the files that the runner writes: run.json, samples.csv, the trace."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracelock.faults.facts import device_samples, run_facts
from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.kineto import Style, write_trace
from tracelock.faults.simulator.simulate import Outcome
from tracelock.io import write_bytes, write_json

TRACE = "trace.json.gz"
SAMPLES = "samples.csv"
INTERVAL_S = 0.25


def write_run(folder: Path, job: Job, outcome: Outcome, rank: int = 0, style: Style | None = None) -> Path:
    """Write the files of one rank's run to `folder`; return its trace."""
    trace = folder / TRACE
    write_trace(trace, job, outcome, rank, style)
    write_facts(folder, job, outcome, trace.name, rank)
    return trace


def write_facts(folder: Path, job: Job, outcome: Outcome, trace: str, rank: int = 0) -> None:
    """Write run.json and samples.csv beside the trace of that name."""
    run = run_facts(job, outcome, rank)
    run["profiled"] |= {"trace": trace, "traces": [trace]}
    run["samples"] = {"file": SAMPLES, "interval_s": INTERVAL_S}
    write_samples(folder / SAMPLES, device_samples(job))
    write_json(folder / "run.json", run)


def write_samples(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns as the runner's sampler does: the time first, an empty cell for what is not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time_s", *columns])
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        writer.writerow([number * INTERVAL_S, *("" if value is None else value for value in row)])
    write_bytes(path, text.getvalue().encode("utf-8"))
