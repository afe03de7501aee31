"""The work of ``tracelock analyze``: each file by itself, then the ranks together."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracelock.analysis import document
from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.meetings import RankTrace, observe
from tracelock.analysis.model import Analysis
from tracelock.analysis.prepared import prepare
from tracelock.analysis.processes import by_process
from tracelock.analysis.ranks import Ranks, compare_ranks
from tracelock.analysis.selection import only_step
from tracelock.cli._files import place_of, prepare_folder, write_analysis, write_ranks
from tracelock.cli._given import expanded, given_file
from tracelock.cli._progress import reading
from tracelock.cli._quiet import quiet
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import Recorded, recorded_beside
from tracelock.errors import EXIT_BAD_INPUT, TracelockError
from tracelock.io import stable_json
from tracelock.trace import Trace, open_trace


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    files: Sequence[Path]
    step: int | None = None
    top: int = 10
    json: bool = False
    output: Path | None = None
    cache: bool = False


@dataclass
class _Outcome:
    """What came of it so far."""

    read: list[tuple[Analysis, Recorded]] = field(default_factory=list)
    found: list[Diagnosed] = field(default_factory=list)
    ranks: list[RankTrace] = field(default_factory=list)
    places: set[Path] = field(default_factory=set)
    failed: bool = False


def run(request: Request) -> int:
    """Analyse the files and tell of them; return the exit code.

    A file that cannot be analysed gets its line on stderr and makes the exit code 2; the others are not affected.
    """
    if request.output is not None:
        prepare_folder(request.output)
    request, outcome = replace(request, files=expanded(request.files)), _Outcome()
    for place, path in enumerate(request.files):
        try:
            outcome.read += _read(request, path, place, outcome)
        except TracelockError as error:
            outcome.failed = True
            _complain(error)
    ranks = _compare(outcome)
    for analysis, recorded in outcome.read:  # only now: a rank that waits for another is known by comparison alone
        _tell(request, diagnose(analysis, run=recorded.run, samples=recorded.samples, ranks=ranks), outcome)
    if request.output is not None and ranks is not None:
        write_ranks(request.output, ranks)
    if not request.json and outcome.found:
        _show(request, outcome.found, ranks)
    return EXIT_BAD_INPUT if outcome.failed else 0


def _read(request: Request, path: Path, place: int, outcome: _Outcome) -> list[tuple[Analysis, Recorded]]:
    """Return what is in a file: one trace, or one of each rank that was merged into it."""
    with given_file(path) as (file, name), reading(Path(name).name) as progress:
        trace = open_trace(file, progress, keep=request.cache)
        progress.analysing()
        parts = by_process(replace(trace, facts=replace(trace.facts, file=name)))
        several = len(parts) > 1 or len(request.files) > 1
        return [
            (_one(request, part, place + number, several, outcome), recorded_beside(file))
            for number, part in enumerate(parts)
        ]


def _one(request: Request, trace: Trace, place: int, several: bool, outcome: _Outcome) -> Analysis:
    known = prepare(trace)
    name = None
    if request.step is not None:
        known = only_step(known, request.step)
        name = known.windows.names[0]
    analysis = analyze_prepared(known)
    analysis = replace(analysis, trace=replace(analysis.trace, only_step=name))
    if several:
        calls = collective_calls(known.trace, known.tree, known.links)
        outcome.ranks.append(observe(known, calls, analysis, place))
    return analysis


def _tell(request: Request, found: Diagnosed, outcome: _Outcome) -> None:
    """Write and print one file's diagnosis."""
    if request.output is not None:
        several = len(outcome.read) > 1 or len(request.files) > 1
        folder = place_of(request.output, found.trace.file, outcome.places) if several else request.output
        write_analysis(folder, found)
    if request.json:
        whole = document.encode(found)
        line = json.dumps(whole, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
        several = len(outcome.read) > 1 or len(request.files) > 1
        sys.stdout.write(line if several else stable_json(whole))
    else:
        outcome.found.append(found)


def _compare(outcome: _Outcome) -> Ranks | None:
    """Return the ranks together, None where the files are no ranks of one job."""
    if len(outcome.ranks) < 2:
        return None
    try:
        ranks = compare_ranks(outcome.ranks)
        if ranks is not None:
            return ranks
        print("tracelock: note: not compared: no file says its rank, and they share no collective", file=sys.stderr)
    except TracelockError as error:
        _complain(error, "note: not compared as ranks of one job: ")
    print("tracelock: note: to see what differs between two traces: tracelock compare A B", file=sys.stderr)
    return None


def _complain(error: TracelockError, kind: str = "error: ") -> None:
    for problem in error.problems:
        print(f"tracelock: {kind}{problem}", file=sys.stderr)


def _show(request: Request, found: Sequence[Diagnosed], ranks: Ranks | None) -> None:
    if quiet():
        told = [(each.trace.file, each.verdict) for each in found]
        print("\n".join(verdict if len(told) == 1 else f"{file}: {verdict}" for file, verdict in told))
        return
    from rich.console import Console

    from tracelock.cli._show import show, show_ranks

    console = Console(highlight=False, markup=False, emoji=False)
    if ranks is not None:
        show_ranks(ranks, found, console, request.top)
        return
    for number, each in enumerate(found):
        if number:
            console.rule()
        show(each, console, request.top)
