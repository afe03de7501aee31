"""Writes the runs of a command's processes to their folders: every file by a rename, run.json last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracelock.io import atomic_path, write_json
from tracelock.runner.command.collect import RUN, SAMPLES, TRACE, Around, Process, document, pack_trace, write_samples


def keep(found: list[Process], around: Around, folder: Path, limit_mb: float | None = None) -> list[Path]:
    """Write a run for each process that has timed steps; return their folders.

    A single process has `folder` for itself; ranks of one job have folders of their own below it, ``rank0`` and so
    on, and further processes ``process1`` and so on.
    """
    timed = [process for process in found if process.record.get("timed", {}).get("steps")]
    places = [folder / name for name in _names(timed)]
    for process, place in zip(timed, places, strict=True):
        keep_one(process, around, place, limit_mb)
    return places


def keep_one(
    process: Process,
    around: Around,
    place: Path,
    limit_mb: float | None = None,
    environment: Mapping[str, Any] | None = None,
) -> None:
    """Write one process's files; `environment` is what a study's gate says of the environment."""
    place.mkdir(parents=True, exist_ok=True)
    for name in (RUN, TRACE, SAMPLES, "analysis.json"):
        (place / name).unlink(missing_ok=True)
    trace, why = pack_trace(process, process.folder, limit_mb)
    whole = document(process, replace(around, warnings=[*around.warnings, *([why] if why else [])]), trace)
    if environment is not None:
        whole["environment_check"] = dict(environment)
    if trace is not None:
        trace.replace(place / TRACE)
    with atomic_path(place / SAMPLES) as temporary:
        write_samples(temporary, process)
    write_json(place / RUN, whole)


def keep_traces(found: list[Process], folder: Path) -> list[Path]:
    """Keep the traces alone, of processes that were watched; return their paths."""
    kept = []
    for process in found:
        if process.record.get("window", {}).get("trace"):
            place = folder / f"rank{process.record['rank']}"
            place.mkdir(parents=True, exist_ok=True)
            trace, _ = pack_trace(process, place, None)
            kept += [trace] if trace is not None else []
    return kept


def _names(timed: list[Process]) -> list[str]:
    """Return the name of each process's folder, an empty one for the only process."""
    if len(timed) == 1:
        return [""]
    if len({process.record["rank"] for process in timed}) == len(timed):
        return [f"rank{process.record['rank']}" for process in timed]
    return ["", *(f"process{number}" for number in range(1, len(timed)))]
