"""What a run of ours recorded beside its trace: its facts (run.json) and its samples (samples.csv)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.diagnosis.case import Samples
from tracelock.diagnosis.samples import read_samples
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
    return Recorded(run, read_samples(samples) or None)


def recorded_beside(trace: Path) -> Recorded:
    """Return what lies beside a trace, where it is one of ours and says that this is its trace."""
    try:
        found = read_recorded(trace.parent / "run.json")
    except TracelockError:
        return Recorded()
    profiled = (found.run or {}).get("profiled")
    return found if isinstance(profiled, dict) and profiled.get("trace") == trace.name else Recorded()
