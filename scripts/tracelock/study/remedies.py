"""What the tested remedies came to: every round with its verdicts, and the path from the baseline to the best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tracelock.io import read_json, schema
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.rounds import best_of, round_folder

_VERDICTS = {"faster": "helped", "slower": "made it worse", "no clear difference": "made no difference"}


def remedies_document(base: Path, rounds: int) -> dict[str, Any]:
    """Return the document ``tracelock/remedies/1`` of a study.

    Parameters
    ----------
    base
        The study's results folder.
    rounds
        How many rounds were planned; the last one may have nothing to run.

    Notes
    -----
    A ratio is the time of the remedy over the time of the variant that its round started from, both measured in that
    round, with its bootstrap interval: below 1 the remedy helped.
    """
    plan = read_json(base / "plan.json", "plan")
    baseline = next(item for item in plan["variants"] if item["id"] == plan["baseline"])
    done = [_round(base, number) for number in range(1, rounds + 1)]
    path = [edge for one in done if (edge := one.pop("edge"))]
    best = path[-1]["to"] if path else plan["baseline"]
    settings = _settings_of(base, best, rounds) or baseline["settings"]
    changed = {name: value for name, value in settings.items() if value != baseline["settings"].get(name)}
    return {
        "schema": schema("remedies"),
        "rounds": done,
        "path": path,
        "best": best,
        "best_settings": {**baseline["overrides"], **changed},
        "best_yaml": yaml.safe_dump({**baseline["overrides"], **changed}, sort_keys=True),
        "stopped": _why(done, plan["remedies"]["max_rounds"]),
    }


def _round(base: Path, number: int) -> dict[str, Any]:
    folder = round_folder(base, number)
    document = read_json(folder / "round.json", "round")
    plan = read_json(folder / "plan.json", "plan")
    result = {
        "round": number,
        "from": document["from"],
        "stopped": document["stopped"],
        "tried": [],
        "edge": None,
    }
    if not plan["runs"]:
        return result
    comparison = compare(folder)
    result["tried"] = [_tried(comparison, proposal) for proposal in document["proposals"]]
    best = best_of(comparison)
    chosen = next((tried for tried in result["tried"] if tried["to"] == best), None)
    result["edge"] = {"from": document["from"], **chosen} if chosen else None
    return result


def _tried(comparison: Comparison, proposal: dict[str, Any]) -> dict[str, Any]:
    """Return what one proposal brought; figures are None where its runs failed."""
    row = next((row for row in comparison.comparisons if row.variant == proposal["variant"]), None)
    ratio = row.difference.ratio if row else None
    verdict = row.difference.verdict if row else None
    return {
        "to": proposal["variant"],
        "finding": proposal["finding"],
        "settings": proposal["settings"],
        "expect": proposal["expect"],
        "metric": row.metric if row else None,
        "runs": row.runs if row else 0,
        "ratio": ratio.value if ratio else None,
        "ratio_low": ratio.low if ratio else None,
        "ratio_high": ratio.high if ratio else None,
        "verdict": _VERDICTS[verdict] if verdict else None,
        "why": row.difference.why if row else "no run of this variant succeeded",
    }


def _settings_of(base: Path, variant: str, rounds: int) -> dict[str, Any] | None:
    for number in range(1, rounds + 1):
        for item in read_json(round_folder(base, number) / "plan.json", "plan")["variants"]:
            if item["id"] == variant:
                return dict(item["settings"])
    return None


def _why(done: list[dict[str, Any]], max_rounds: int) -> str:
    """Return why no further round followed."""
    last = done[-1]
    if last["stopped"] and not last["tried"]:
        return str(last["stopped"])
    return f"remedies.max_rounds is {max_rounds}"
