"""What a grading says: each case, the confusion matrix, bounds, peers, and the three shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tracelock.faults.families import FAMILIES
from tracelock.faults.grade import Answer, confusion, grade
from tracelock.faults.peers import Advice, compared
from tracelock.io import schema

SLACK = 0.03  # of the step: what eight recorded steps differ by from the long run that a fault's true cost is taken of


def document(seeds: str, answers: Sequence[Answer], advice: Sequence[tuple[str, Advice]]) -> dict[str, Any]:
    """Return the document ``tracelock/faults/1``; its last key is ``grade``."""
    return {
        "schema": schema("faults"),
        "seeds": seeds,
        "cases": [asdict(answer) for answer in answers],
        "confusion": confusion(answers),
        "bounds_held": bounds_held(answers),
        "peers": compared(advice),
        "grade": grade(answers),
    }


def bounds_held(answers: Sequence[Answer]) -> float | None:
    """Return the share of rightly named causes whose bound is no less than the true cost, less `SLACK`.

    Small batches are left out: their cost is one of throughput, and the bound is one of the step.
    """
    costly = {family.name for family in FAMILIES if family.costs and family.name != "small batches"}
    told = [each for each in answers if each.family in costly and each.right and each.bound is not None]
    held = [each.bound is not None and each.bound >= each.cost - SLACK for each in told]
    return sum(held) / len(held) if held else None


def matrix(answers: Sequence[Answer]) -> str:
    """Return the confusion matrix as a Markdown table: faults down, what was named as the main cause across."""
    lines = ["| fault | cases | right | named instead |", "| --- | ---: | ---: | --- |"]
    expected = {each.family: each.expected for each in answers}
    for family, found in confusion(answers).items():
        total, right = sum(found.values()), found.get(expected[family], 0)
        others = ", ".join(f"{code} {count}" for code, count in sorted(found.items()) if code != expected[family])
        lines.append(f"| {family} (`{expected[family]}`) | {total} | {right} | {others or '–'} |")
    return "\n".join(lines)


def peers_table(answers: Sequence[Answer], advice: Sequence[tuple[str, Advice]]) -> str:
    """Return what each tool got right as a Markdown table."""
    ours = grade(answers)
    lines = ["| tool | right | right where it has a rule | false alarms |", "| --- | ---: | ---: | ---: |"]
    rows = [("tracelock", ours["main_cause_right"], ours["main_cause_right"], ours["false_alarms"])]
    for tool, shares in compared(advice).items():
        rows.append((tool, shares["right"], shares["right_where_it_has_a_rule"], shares["false_alarms"]))
    return "\n".join(
        [*lines, *(f"| {name} | {' | '.join(_percent(share) for share in shares)} |" for name, *shares in rows)]
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
