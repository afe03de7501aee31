"""Analyses the traces of a script's processes, alone and as ranks of one job, and writes what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracelock.analysis import document
from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.meetings import RankTrace, observe
from tracelock.analysis.model import Analysis
from tracelock.analysis.prepared import prepare
from tracelock.analysis.ranks import Ranks, compare_ranks
from tracelock.cli._files import write_ranks
from tracelock.cli._progress import reading
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import Recorded, read_recorded
from tracelock.errors import TracelockError
from tracelock.trace import read_trace


@dataclass(frozen=True)
class Explained:
    """One process's run, and what its trace says; `found` is None where there is no trace, and `why` says why."""

    folder: Path
    run: dict[str, Any]
    found: Diagnosed | None = None
    ranks: Ranks | None = None
    why: str = ""

    @property
    def document(self) -> dict[str, Any] | None:
        """The analysis as JSON takes it."""
        return None if self.found is None else document.encode(self.found)


@dataclass(frozen=True)
class _Read:
    folder: Path
    recorded: Recorded
    analysis: Analysis | None
    seen: RankTrace | None
    why: str


def explain(folders: Sequence[Path]) -> list[Explained]:
    """Return what the runs in `folders` say, and write an ``analysis.json`` beside each trace."""
    read = [_read(folder, place, len(folders) > 1) for place, folder in enumerate(folders)]
    ranks = _together([each.seen for each in read if each.seen is not None])
    if ranks is not None and len(folders) > 1:
        write_ranks(folders[0].parent, ranks)
    return [_explained(each, ranks) for each in read]


def write_page(explained: Sequence[Explained], folder: Path) -> Path | None:
    """Write the page of the traces, all ranks together; return where it lies, None without a trace."""
    from tracelock.cli import _trace_report

    traces = [each.folder / "trace.json.gz" for each in explained if each.found is not None]
    together = traces if len(traces) < 2 or explained[0].ranks is not None else traces[:1]
    return _trace_report.run(together, folder / "report.html")[0] if together else None


def _read(folder: Path, place: int, several: bool) -> _Read:
    recorded = read_recorded(folder / "run.json")
    run = recorded.run or {}
    name = run["profiled"]["trace"]
    if name is None:
        return _Read(folder, recorded, None, None, run["unknown"].get("profiled.trace", ""))
    try:
        with reading(name) as progress:
            trace = read_trace(folder / name, progress)
            progress.analysing()
            known = prepare(replace(trace, facts=replace(trace.facts, file=str(folder / name))))
            analysis = analyze_prepared(known)
    except TracelockError as error:
        return _Read(folder, recorded, None, None, str(error))
    calls = collective_calls(known.trace, known.tree, known.links) if several else None
    seen = observe(known, calls, analysis, place) if calls is not None else None
    return _Read(folder, recorded, analysis, seen, "")


def _together(seen: Sequence[RankTrace]) -> Ranks | None:
    if len(seen) < 2:
        return None
    try:
        return compare_ranks(seen)
    except TracelockError:
        return None


def _explained(read: _Read, ranks: Ranks | None) -> Explained:
    run = read.recorded.run or {}
    if read.analysis is None:
        return Explained(read.folder, run, why=read.why)
    found = diagnose(read.analysis, run=read.recorded.run, samples=read.recorded.samples, ranks=ranks)
    document.write(read.folder / "analysis.json", found)
    return Explained(read.folder, run, found, ranks)
