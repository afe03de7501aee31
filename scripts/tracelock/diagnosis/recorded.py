"""What a run of ours recorded beside its trace: its facts (run.json) and its samples (samples.csv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.diagnosis.case import Samples
from tracelock.errors import TracelockError
from tracelock.io import read_json


@dataclass(frozen=True)
class Recorded:
    """The run that made a trace; both None where the trace comes from elsewhere."""

    run: dict[str, Any] | None = None
    samples: Samples | None = None


def read_recorded(path: Path) -> Recorded:
    """Return the facts of a ``run.json`` and the samples beside it.

    Raises
    ------
    TracelockError
        If the file cannot be read or is no ``tracelock/run/1``.
    """
    run = read_json(path, "run")
    samples = path.parent / run.get("samples", {}).get("file", "samples.csv")
    return Recorded(run, read_samples(samples) if samples.is_file() else None)


def recorded_beside(trace: Path) -> Recorded:
    """Return what lies beside a trace, where it is one of ours and says that this is its trace."""
    try:
        found = read_recorded(trace.parent / "run.json")
    except TracelockError:
        return Recorded()
    profiled = (found.run or {}).get("profiled")
    return found if isinstance(profiled, dict) and profiled.get("trace") == trace.name else Recorded()


def read_samples(path: Path) -> dict[str, list[float | None]]:
    """Return the columns of ``samples.csv``; an empty cell is None, a list of processes their sum."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = list(rows[0]) if rows else []
    return {name: [_number(row[name]) for row in rows] for name in names}


def _number(cell: str | None) -> float | None:
    """Return a cell's number; None where it is empty, or a text as the names of throttling reasons are."""
    try:
        return sum(map(float, cell.split())) if cell and cell.strip() else None
    except ValueError:
        return None
