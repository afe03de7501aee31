"""The work of ``tracelock reproduce``: ask, run, and say what came of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracelock.bundle.again import Again
from tracelock.bundle.opened import Opened
from tracelock.bundle.reproduce import (
    Reproduction,
    analysis_json,
    analysis_only,
    build_environment,
    measured_again,
    opened_in,
    what_would_run,
)
from tracelock.bundle.rerun import Request
from tracelock.errors import Problem, TracelockError, nearest
from tracelock.io import stable_json
from tracelock.study.stats import Interval

if TYPE_CHECKING:
    from tracelock.bundle.same import Row

_DEVICES = ("auto", "cpu", "cuda")
_WORDS = {
    "same": "the same conclusion",
    "differs": "ANOTHER conclusion",
    "undecided": "undecided: this measurement cannot confirm all of the conclusions",
}


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    bundle: Path
    target: Path
    request: Request
    trust: bool
    json: bool


def check_options(analysis: bool, environment: bool, device: str | None) -> None:
    """Refuse options that contradict each other."""
    problems = []
    if analysis and environment:
        problems.append(Problem("--env-only", "cannot be with --analysis-only, which builds no environment"))
    if device is not None and device not in _DEVICES:
        problems.append(Problem("--device", f"is {device!r}, expected auto, cpu or cuda", nearest(device, _DEVICES)))
    if problems:
        raise TracelockError(problems)


def analysis(asked: Asked) -> int:
    """Make tables and figures again; return the exit code."""
    opened = opened_in(asked.bundle, asked.target)
    again = analysis_only(opened, asked.target, _say)
    if asked.json:
        sys.stdout.write(stable_json(analysis_json(again)))
    else:
        _tell_analysis(again)
    return 1 if again.other else 0


def environment(asked: Asked) -> int:
    """Build the environment alone; return the exit code."""
    opened = opened_in(asked.bundle, asked.target)
    _ask(opened, asked, "the packages of the environment may run code while they are installed")
    built = build_environment(opened, asked.target / "reproduction", asked.request, _say)
    for note in built.notes:
        print(f"note: {note}")
    print("the environments are built when the study runs" if built.conda else f"{built.python}: built and checked")
    return 0


def measurement(asked: Asked) -> int:
    """Measure again and judge; return the exit code."""
    opened = opened_in(asked.bundle, asked.target)
    _ask(opened, asked, "this code will run on your machine, with your rights")
    found = measured_again(opened, asked.target, asked.request, _say)
    if asked.json:
        sys.stdout.write(stable_json(found.to_json()))
    else:
        _tell(found)
    return 0 if found.verdict == "same" else 1


def _ask(opened: Opened, asked: Asked, warning: str) -> None:
    """Show what would run and wait for a yes; without a person, only `--trust` is one."""
    for line in what_would_run(opened):
        print(line, file=sys.stderr)
    print(f"Read it in {opened.folder / 'study'}; {warning}.", file=sys.stderr)
    if asked.trust:
        return
    if not sys.stdin.isatty():
        raise TracelockError(Problem(str(asked.bundle), "nobody is there to agree", "read the code, then add --trust"))
    print("Run it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise TracelockError(Problem(str(asked.bundle), "was not run"))


def _say(line: str) -> None:
    print(f"reproduce: {line}", file=sys.stderr, flush=True)


def _tell_analysis(again: Again) -> None:
    print(f"{len(again.same)} files have the same bytes as in the archive: tables, figures, comparison, report")
    for name in again.other:
        print(f"differs: {name}")
    if again.other:
        print("the numbers of all tables agree" if again.numbers else "NUMBERS DIFFER in the tables")
    for reason in again.reasons:
        print(f"likely reason: {reason}")
    print(f"Results: {again.folder}")


def _tell(found: Reproduction) -> None:
    print(f"\nVerdict: {_WORDS[found.verdict]}\n")
    for word in ("contradicted", "open", "confirmed", "nothing to confirm"):
        rows = [row for row in found.rows if row.word == word]
        if rows:
            print(f"{word}:")
        for row in rows:
            print("\n".join(_lines(row)))
    if found.verdict != "same" and found.reasons:
        print("\nWhat differs between the two measurements, the likeliest reason first:")
        for reason in found.reasons:
            print(f"  {reason.kind}: {reason.what}: {reason.original or '–'} → {reason.again}")
    for note in found.notes:
        print(f"note: {note}")
    print(f"\nResults: {found.results} (a study of its own: tracelock bundle takes it)")


def _lines(row: Row) -> list[str]:
    shown = f"{row.original} → {row.again}" if row.original != row.again else row.original
    lines = [f"  {row.kind}, {row.where}: {shown}"]
    if row.ratio and row.ratio_again:
        apart = "" if row.within else "  (the intervals do not meet)"
        lines.append(f"    {_figure(row.ratio)} → {_figure(row.ratio_again)}{apart}")
    return lines


def _figure(interval: Interval) -> str:
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
