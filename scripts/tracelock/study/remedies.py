"""What the tested remedies came to: every round with its verdicts, and the path from the baseline to the best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tracelock.io import read_json, schema
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.overview import settings_text
from tracelock.study.rounds import best_of, measured_settings, round_folder
from tracelock.study.variants import effective

_VERDICTS = {"faster": "helped", "slower": "made it worse"}


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
    path = [*_factor_edge(base, plan), *(edge for one in done if (edge := one.pop("edge")))]
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
        "left": _left(base, best, rounds, plan["environments"][0]),
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
        "verdict": _VERDICTS.get(verdict, row.difference.words) if row and verdict else None,
        "why": row.difference.why if row else "no run of this variant succeeded",
    }


def _factor_edge(base: Path, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the way from the baseline to the variant of the study that the rounds started from, if it is another."""
    comparison = compare(base)
    place = plan["environments"][0]
    best = best_of(comparison, place)
    row = next((row for row in comparison.comparisons if row.within and row.key == (place, best)), None)
    if row is None:
        return []
    ratio = row.difference.ratio
    return [
        {
            "from": plan["baseline"],
            "to": row.variant,
            "kind": "factor",
            "finding": None,
            "settings": {name: after for name, (_, after) in row.changed.items()},
            "expect": "",
            "metric": row.metric,
            "runs": row.runs,
            "ratio": ratio.value,
            "ratio_low": ratio.low,
            "ratio_high": ratio.high,
            "verdict": "faster",
            "why": "",
        }
    ]


def _settings_of(base: Path, variant: str, rounds: int) -> dict[str, Any] | None:
    for number in range(1, rounds + 1):
        for item in read_json(round_folder(base, number) / "plan.json", "plan")["variants"]:
            if item["id"] == variant:
                return dict(item["settings"])
    return None


def _left(base: Path, best: str, rounds: int, place: str) -> dict[str, Any] | None:
    """Return what the traces of the best variant name as its main cause, and the first advice that was not measured."""
    for folder in [*(round_folder(base, number) for number in range(rounds, 0, -1)), base]:
        if not read_json(folder / "plan.json", "plan")["runs"]:
            continue
        comparison = compare(folder)
        case = next((case for case in comparison.cases if case.key == (place, best) and case.explained.analysed), None)
        found = comparison.findings_of(case) if case else []
        if found:
            measured, there = measured_settings(base, rounds), dict(case.settings) if case else {}
            advice = next((one for one in found[0].remedies if not _leads_to(measured, there, one.settings)), None)
            text = advice and (settings_text(advice.settings) or advice.code or advice.expect)
            return {"finding": found[0].code, "title": found[0].title, "advice": text}
    return None


def _leads_to(measured: list[dict[str, Any]], there: dict[str, Any], change: dict[str, Any]) -> bool:
    """Return whether a change of settings leads to what has been measured; advice for the code never does."""
    return bool(change) and effective({**there, **change}) in measured


def _why(done: list[dict[str, Any]], max_rounds: int) -> str:
    """Return why no further round followed."""
    last = done[-1]
    if last["stopped"] and not last["tried"]:
        return str(last["stopped"])
    return f"remedies.max_rounds is {max_rounds}"
