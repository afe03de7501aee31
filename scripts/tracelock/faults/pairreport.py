"""What a grading of jobs with two faults says: shares, calibration, and what poorer recordings bear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tracelock.faults.pairgrade import PairAnswer, calibration, grade_pairs, robustness
from tracelock.io import schema


def pairs_document(seeds: str, answers: Sequence[PairAnswer]) -> dict[str, Any]:
    """Return the document ``tracelock/faults/1`` of pairs; its last key is ``grade``, null where no case tells."""
    return {
        "schema": schema("faults"),
        "seeds": seeds,
        "cases": [_case(answer) for answer in answers],
        "calibration": calibration(answers),
        "robustness": robustness(answers),
        "grade": {"false_alarms": None, "cure_named": None, **grade_pairs(answers)},
    }


def _case(answer: PairAnswer) -> dict[str, Any]:
    told = {"right": answer.right, "second_named": answer.second_named, "bound_held": answer.bound_held}
    return asdict(answer) | told


def pairs_tables(seeds: str, answers: Sequence[PairAnswer]) -> str:
    """Return the tables of docs/measurements.md as Markdown."""
    lines = [f"Jobs with two faults, seeds {seeds}: {len(answers)} recordings", ""]
    lines += ["| | measured |", "| --- | ---: |"]
    lines += [f"| `{name}` | {_percent(share)} |" for name, share in grade_pairs(answers).items()]
    lines += ["", "| confidence | verdicts | right |", "| --- | ---: | ---: |"]
    lines += [f"| {level} | {row['cases']} | {_percent(row['right'])} |" for level, row in calibration(answers).items()]
    lines += ["", "| recording | cases | right | silent | wrong | silent or wrong with high confidence |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, row in robustness(answers).items():
        lines.append(f"| {name} | {' | '.join(str(count) for count in row.values())} |")
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
