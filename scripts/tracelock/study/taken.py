"""How a recorded trace is taken away: its run says so first, and its analysis, which cannot be made again, stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from tracelock.errors import TracelockError
from tracelock.io import atomic_path, read_json, stable_json

PATTERNS = ("trace.json.gz", "trace.*.json.gz", "trace.json", "*.pt.trace.json", "*.pt.trace.json.gz")
_KEPT = "analysis.kept.json"


def trace_files(folder: Path) -> tuple[Path, ...]:
    """Return the recorded traces in the folder of a run; links are none of ours."""
    named = (file for file in sorted(folder.iterdir()) if any(fnmatch(file.name, pattern) for pattern in PATTERNS))
    return tuple(file for file in named if file.is_file() and not file.is_symlink())


def take_away(folder: Path, files: Iterable[Path], why: str) -> int:
    """Take traces of a run away and return the bytes freed; its run.json says first that they went, and why.

    The analysis gets a second name, which no later run of the rule removes: it cannot be made again.
    """
    files = list(files)
    freed = sum(size_of(file) for file in files)
    _keep_analysis(folder)
    _say(folder / "run.json", freed, why)
    for file in files:
        file.unlink(missing_ok=True)
    return freed


def kept_analysis(run: Path) -> Path | None:
    """Return the kept analysis of the run of a run.json whose trace was taken away; None where it was not."""
    kept = run.with_name(_KEPT)
    profiled = read_json(run, "run").get("profiled")
    gone = isinstance(profiled, dict) and "freed" in profiled
    return kept if gone and kept.is_file() else None


def is_analysed(folder: Path) -> bool:
    """Return whether the figures of a run's trace are there: a reason in their place frees nothing."""
    try:
        read_json(folder / "analysis.json", "analysis")
    except TracelockError:
        return False
    return True


def size_of(file: Path) -> int:
    """Return the bytes of a file, 0 for one that is gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _keep_analysis(folder: Path) -> None:
    analysis, kept = folder / "analysis.json", folder / _KEPT
    if not analysis.is_file():
        return
    kept.unlink(missing_ok=True)
    try:
        os.link(analysis, kept)
    except OSError:  # a file system without links
        shutil.copy2(analysis, kept)


def _say(record: Path, size: int, why: str) -> None:
    """Have a run.json say that its trace went. It keeps its time: nothing that was made from it is to be made again."""
    if not record.is_file():
        return
    document = read_json(record, "run")
    profiled = document.get("profiled")
    if not isinstance(profiled, dict) or not profiled.get("trace"):
        return
    profiled |= {"freed": {"trace": profiled["trace"], "bytes": size, "why": why}, "trace": None, "traces": []}
    document["unknown"] = {
        **(document.get("unknown") or {}),
        "profiled.trace": f"taken away after its analysis ({why})",
    }
    was = record.stat()
    with atomic_path(record) as temporary:
        temporary.write_text(stable_json(document), encoding="utf-8")
        os.utime(temporary, ns=(was.st_atime_ns, was.st_mtime_ns))
