"""Further runs beside the plan: disturbed ones once more, and others until intervals are as narrow as was asked.

Each wave is one file, ``more/<n>.json``; an empty one ends it. The runs lie beside the planned ones, with the repeats
that follow theirs, and count like them: the comparison reads every run that it finds.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracelock.errors import TracelockError
from tracelock.io import read_json, schema, write_json
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison, ComparisonRow

KIND = "more"
Case = tuple[str, str]


def plan_more(base: Path, number: int) -> None:
    """Write the wave `number` (from 1) of further runs of the study whose results lie in `base`."""
    plan = read_json(base / "plan.json", "plan")
    try:
        found = compare(base)
    except TracelockError:  # not a single run succeeded: there is nothing to make more certain
        _write(base, number, [], "no run succeeded")
        return
    wanted: dict[Case, int] = defaultdict(int)
    why: dict[Case, str] = {}
    if number == 1 and plan.get("repeat_disturbed", True):
        _once_more(found, wanted, why)
    stopped = _narrower(found, plan, wanted, why)
    _write(base, number, list(_runs(base, number, plan, wanted, why)), stopped)


def more_plans(base: Path) -> list[dict[str, Any]]:
    """Return the waves that are there, in their order."""
    files = sorted((base / "more").glob("*.json"), key=lambda path: int(path.stem) if path.stem.isdigit() else 0)
    return [read_json(file, KIND) for file in files if file.stem.isdigit()]


def _once_more(found: Comparison, wanted: dict[Case, int], why: dict[Case, str]) -> None:
    """Ask for one more run in the place of each that was disturbed, unless the machine is busy all the time."""
    disturbed = found.disturbed()
    if 2 * len(disturbed) > len(found.runs):
        return
    for run in disturbed:
        case = (run.environment, run.variant)
        wanted[case] += 1
        why[case] = f"a run was disturbed: {found.disturbance(run)}"


def _narrower(found: Comparison, plan: dict[str, Any], wanted: dict[Case, int], why: dict[Case, str]) -> str:
    """Ask for runs of both sides of each ratio whose interval is wider than asked; return why no more are."""
    precision, most = plan.get("precision"), plan.get("max_repeats") or 0
    if precision is None:
        return "no precision is asked for"
    left = []
    for row in found.comparisons:
        half = _half_width(row)
        if not row.within or half <= precision:
            continue
        for case, have in (
            (row.key, row.runs),
            ((row.reference_environment, row.reference_variant), row.reference_runs),
        ):
            more = min(_further(have, half / precision), most - have)
            if more > 0:
                wanted[case] = max(wanted[case], more)
                why.setdefault(case, f"the interval of its ratio is ±{100 * half:.1f} %, wanted ±{100 * precision:g} %")
        if max(row.runs, row.reference_runs) >= most:
            left.append(row.variant)
    if left:
        return f"max_repeats is {most}: wider than asked: {', '.join(sorted(set(left)))}"
    return "" if wanted else "all intervals are as narrow as asked"


def _half_width(row: ComparisonRow) -> float:
    """Return half of the interval of a ratio, as a share of it."""
    ratio = row.difference.ratio
    return (ratio.high - ratio.low) / 2 / ratio.value


def _further(have: int, factor: float) -> int:
    """Return how many further runs narrow an interval by `factor`: as its square, at most as many again."""
    return max(1, min(have, math.ceil(have * factor**2) - have))


def _runs(
    base: Path, number: int, plan: dict[str, Any], wanted: dict[Case, int], why: dict[Case, str]
) -> Iterable[dict[str, Any]]:
    """Yield the runs of a wave, interleaved in a random order that the seed determines."""
    last: dict[Case, int] = defaultdict(int)
    earlier = [run for one in more_plans(base) if one["wave"] < number for run in one["runs"]]
    for run in (*plan["runs"], *earlier):
        case = (run["environment"], run["variant"])
        last[case] = max(last[case], run["repeat"])
    chance, order = random.Random(plan["seed"] + number), 0  # noqa: S311  no secret: it must be repeatable
    for turn in range(1, max(wanted.values(), default=0) + 1):
        cases = sorted(case for case, count in wanted.items() if count >= turn)
        chance.shuffle(cases)
        for case in cases:
            repeat = last[case] + turn
            yield {"environment": case[0], "variant": case[1], "repeat": repeat, "order": order, "why": why[case]}
            order += 1


def _write(base: Path, number: int, runs: list[dict[str, Any]], stopped: str) -> None:
    document = {"schema": schema(KIND), "wave": number, "runs": runs, "stopped": stopped if not runs else ""}
    write_json(base / "more" / f"{number}.json", document)
