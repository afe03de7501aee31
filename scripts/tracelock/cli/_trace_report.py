"""The work of ``tracelock report`` for traces: read, analyse, diagnose, and write one page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.meetings import observe
from tracelock.analysis.model import Analysis
from tracelock.analysis.prepared import Prepared, prepare
from tracelock.analysis.ranks import Ranks, compare_ranks
from tracelock.cli._given import given_file
from tracelock.cli._progress import reading
from tracelock.cli._rank_tables import rank_verdict
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import recorded_beside
from tracelock.errors import TracelockError
from tracelock.io import write_text
from tracelock.report.trace.page import file_of, render
from tracelock.trace import open_trace

TRACE = "trace.json.gz"  # of a run of ours


def run(files: Sequence[Path], output: Path | None, *, cache: bool = False) -> tuple[Path, list[Diagnosed]]:
    """Write the page of `files`, which are ranks of one job where there are several; return where it lies.

    Raises
    ------
    TracelockError
        If a file cannot be read.
    """
    known = [_read(path, cache) for path in files]
    analyses = [analyze_prepared(each) for each in known]
    ranks = _ranks(known, analyses)
    found = [_diagnosed(path, each, ranks) for path, each in zip(files, analyses, strict=True)]
    pages = [file_of(one, each, 1 / len(files)) for one, each in zip(known, found, strict=True)]
    place = output or Path(f"{_stem(files[0])}-report.html")
    write_text(place, render(pages, ranks, "" if ranks is None else rank_verdict(ranks)))
    return place, found


def _read(path: Path, cache: bool) -> Prepared:
    with given_file(path) as (file, name), reading(Path(name).name) as progress:
        trace = open_trace(file, progress, keep=cache)
        progress.analysing()
        return prepare(replace(trace, facts=replace(trace.facts, file=name)))


def _diagnosed(path: Path, analysis: Analysis, ranks: Ranks | None) -> Diagnosed:
    recorded = recorded_beside(path)
    return diagnose(analysis, run=recorded.run, samples=recorded.samples, ranks=ranks)


def _ranks(known: Sequence[Prepared], analyses: Sequence[Analysis]) -> Ranks | None:
    if len(known) < 2:
        return None
    seen = [
        observe(each, collective_calls(each.trace, each.tree, each.links), analysis, place)
        for place, (each, analysis) in enumerate(zip(known, analyses, strict=True))
    ]
    try:
        return compare_ranks(seen)
    except TracelockError as error:
        for problem in error.problems:
            print(f"tracelock: note: not compared as ranks of one job: {problem}", file=sys.stderr)
        return None


def _stem(path: Path) -> str:
    name = path.parent.name if path.name == TRACE else path.name
    for suffix in (".gz", ".zip", ".json", ".trace", ".pt"):
        name = name.removesuffix(suffix)
    return "trace" if name in ("", "-") else name
