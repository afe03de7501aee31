"""The work of ``tracelock faults``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.errors import Problem, TracelockError
from tracelock.faults.collection import Told, ask_all, cases, parse_seeds, wanted
from tracelock.faults.grade import Answer, grade
from tracelock.faults.pairgrade import PairAnswer, ask_pairs
from tracelock.faults.pairreport import pairs_document, pairs_tables
from tracelock.faults.pairs import pairs
from tracelock.faults.peers import Advice
from tracelock.faults.real import answers as real_answers
from tracelock.faults.report import bounds_held, document, matrix, peers_table


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    seeds: str
    families: tuple[str, ...]
    real: Path | None
    peers: bool
    gpu_idle: Path | None
    jobs: int
    json: bool


def run(request: Request) -> None:
    """Draw the cases, ask about them, and print what came of it."""
    if request.gpu_idle is not None and not request.gpu_idle.is_file():
        hint = "python3 -m venv .venv-bench && .venv-bench/bin/pip install gpu-idle==0.1.0"
        raise TracelockError(Problem(str(request.gpu_idle), "is no file, expected the program gpu-idle", hint))
    asked = cases(parse_seeds(request.seeds), wanted(request.families), request.peers, request.gpu_idle)
    told: list[Told] = []
    for each in ask_all(asked, request.jobs):
        told.append(each)
        _progress(len(told), len(asked), each.answer)
    answers = [each.answer for each in told]
    advice = [(each.answer.expected, said) for each in told for said in each.advice]
    real = _real(request.real) if request.real else []
    if request.json:
        found = document(request.seeds, [*answers, *real], advice)
        print(json.dumps(found, ensure_ascii=False, allow_nan=False))
    else:
        _show(request.seeds, answers, advice, real)


def run_pairs(seeds: str, jobs: int, *, as_json: bool) -> None:
    """Draw jobs with two faults, ask about them, and print what came of it."""
    chosen = parse_seeds(seeds)
    answers: list[PairAnswer] = []
    for number, told in enumerate(ask_pairs(chosen, jobs), 1):
        answers += told
        named = f"{told[0].family} ({told[0].seed}): {', '.join(told[0].found)}" if told else "no case"
        print(f"{number}/{len(chosen) * len(tuple(pairs()))} {named}", file=sys.stderr)
    if as_json:
        print(json.dumps(pairs_document(seeds, answers), ensure_ascii=False, allow_nan=False))
    else:
        print(pairs_tables(seeds, answers))


def _real(folder: Path) -> list[Answer]:
    found = []
    for each in real_answers(folder):
        found.append(each)
        _progress(len(found), None, each)
    return found


def _progress(done: int, whole: int | None, answer: Answer) -> None:
    place = f"{done}/{whole}" if whole else f"real {done}"
    verdict = "right" if answer.right else f"named {answer.main}"
    print(f"{place} {answer.family} ({answer.seed}): {verdict}", file=sys.stderr)


def _show(seeds: str, answers: Sequence[Answer], advice: Sequence[tuple[str, Advice]], real: Sequence[Answer]) -> None:
    """Print the tables that docs/measurements.md shows, as Markdown."""
    print(f"Simulated, seeds {seeds}: {len(answers)} cases\n\n{matrix(answers)}\n")
    held = bounds_held(answers)
    if held is not None:
        print(f"True cost within the bound of the gain: {held:.1%} of rightly named causes\n")
    _print_grade(answers)
    if advice:
        print(f"\n{peers_table(answers, advice)}")
    if real:
        print(f"\nReal runs on this CPU: {len(real)} cases\n\n{matrix(real)}\n")
        _print_grade(real)
        cheap = ", ".join(each.family for each in real if not each.graded)
        print(f"Not graded, because the fault cost less than a tenth of the step here: {cheap or 'none'}")


def _print_grade(answers: Sequence[Answer]) -> None:
    shares = {name: "–" if share is None else f"{share:.1%}" for name, share in grade(answers).items()}
    print(
        f"Main cause right {shares['main_cause_right']}, false alarms {shares['false_alarms']}, "
        f"cure named {shares['cure_named']}"
    )
