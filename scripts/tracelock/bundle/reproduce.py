"""The whole way of a reproduction: opened, checked, shown, built, measured, judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tracelock.bundle.again import Again, analyse_again
from tracelock.bundle.opened import Opened, open_bundle, what_would_run
from tracelock.bundle.reasons import Reason, reasons
from tracelock.bundle.rerun import Request, build_environment, measure, place_study
from tracelock.bundle.same import Row, Verdict, conclusions, judge
from tracelock.errors import Problem, TracelockError
from tracelock.io import schema, write_json
from tracelock.study import comparison as comparison_document

KIND = "reproduction"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Reproduction:
    """What a second measurement came to. `rows` are conclusions, figure by figure."""

    verdict: Verdict
    results: Path
    rows: tuple[Row, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return ``tracelock/reproduction/1``."""
        return {
            "schema": schema(KIND),
            "mode": "measured",
            "verdict": self.verdict,
            "results": self.results.as_posix(),
            "conclusions": msgspec.to_builtins(self.rows),
            "reasons": msgspec.to_builtins(self.reasons),
            "notes": list(self.notes),
        }


def opened_in(archive: Path, target: Path) -> Opened:
    """Unpack `archive` below `target`, which must be a new folder; nothing is left of it if the archive is bad.

    Raises
    ------
    TracelockError
        If something stands at `target`, or the archive is not sound.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise TracelockError(Problem(str(target), "is there already", "name a new folder with --output"))
    there = target.exists()
    try:
        return open_bundle(archive, target / "reproduction" / "original")
    except BaseException:
        shutil.rmtree(target if not there else target / "reproduction", ignore_errors=True)
        raise


def analysis_only(opened: Opened, target: Path, say: Say) -> Again:
    """Make tables and figures again below ``target/results`` and return whether they are the same."""
    again = analyse_again(opened, target / "results" / opened.document.study, say)
    write_json(again.folder / "reproduction.json", analysis_json(again))
    return again


def analysis_json(again: Again) -> dict[str, Any]:
    """Return ``tracelock/reproduction/1`` of an analysis made again."""
    return {
        "schema": schema(KIND),
        "mode": "analysis only",
        "verdict": "differs" if again.other else "same",
        "results": again.folder.as_posix(),
        "same_bytes": list(again.same),
        "other_bytes": list(again.other),
        "numbers_agree": again.numbers,
        "reasons": list(again.reasons),
    }


def measured_again(opened: Opened, target: Path, request: Request, say: Say) -> Reproduction:
    """Measure the study of an archive again below `target` and compare its conclusions."""
    file = place_study(opened, target, request)
    built = build_environment(opened, target / "reproduction", request, say)
    say("measuring")
    results = measure(opened, file, target, built)
    found = judged(opened, results, built.notes)
    write_json(results / "reproduction.json", found.to_json())
    return found


def judged(opened: Opened, results: Path, notes: tuple[str, ...] = ()) -> Reproduction:
    """Compare finished results with those of an archive."""
    again = comparison_document.read(results / "comparison.json")
    rows = conclusions(opened.comparison, again)
    return Reproduction(judge(rows), results, tuple(rows), tuple(reasons(opened, results, again)), notes)


__all__ = [
    "Reproduction",
    "analysis_json",
    "analysis_only",
    "build_environment",
    "judged",
    "measured_again",
    "opened_in",
    "what_would_run",
]
