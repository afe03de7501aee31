"""Remedies as further variants: what the diagnosis proposes is run, and measured against where it started from.

A round is a small study of its own below ``rounds/<n>/``: it has a plan, its baseline is the variant that the round
starts from (measured again, interleaved with the proposals), and it is compared like any study. The first round starts
from the fastest variant of the study, where one is clearly faster than the baseline: so there is one path from the
baseline to the best. The next round starts from the best of this one.

Rounds end when nothing is proposed, nothing proposed clearly helped, or a limit is reached.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tracelock.diagnosis.propose import Proposal, propose
from tracelock.io import digest, read_json, schema, stable_json
from tracelock.runner.command.factors import OUTSIDE
from tracelock.runner.settings import table
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.gather import Gathered, gather
from tracelock.study.plan import PLACE, interleave, seal, write_if_changed
from tracelock.study.variants import effective, variant_id


@dataclass(frozen=True)
class Start:
    """Where a round starts: a results folder, and the variant of it that is to become faster."""

    folder: Path
    environment: str
    variant: str


def round_folder(base: Path, number: int) -> Path:
    """Return the folder of a round below a study's results."""
    return base / "rounds" / str(number)


def plan_round(base: Path, number: int) -> None:
    """Write ``plan.json``, ``round.json`` and the specs of round `number` (from 1) below a study's results."""
    plan = read_json(base / "plan.json", "plan")
    start = _start(base, number)
    if start is None:
        _write(base, number, plan, None, [], "nothing that the last round tried clearly helped")
        return
    results = gather(start.folder)
    proposals = _proposals(base, number, results, start)
    kept, why = _within_limits(base, number, plan, proposals)
    _write(base, number, plan, start, kept, why)


def _start(base: Path, number: int) -> Start | None:
    """Return where round `number` starts; None when the round before brought nothing."""
    if number == 1:
        plan = read_json(base / "plan.json", "plan")
        place = plan["environments"][0]
        return Start(base, place, best_of(compare(base), place) or plan["baseline"])
    before = round_folder(base, number - 1)
    plan = read_json(before / "plan.json", "plan")
    if not plan["runs"]:
        return None
    best = best_of(compare(before))
    return Start(before, plan["environments"][0], best) if best else None


def best_of(comparison: Comparison, environment: str | None = None) -> str | None:
    """Return the variant with the least time among those that are clearly faster than the baseline."""
    faster = [
        row
        for row in comparison.comparisons
        if row.within and row.verdict == "faster" and environment in (None, row.environment)
    ]
    return min(faster, key=lambda row: row.difference.ratio.value).variant if faster else None


def _proposals(base: Path, number: int, results: Gathered, start: Start) -> list[Proposal]:
    """Return what the diagnosis of the starting variant proposes and neither study nor round has measured yet."""
    runs = [
        (one.run.timed.duration_us / one.run.timed.steps, one.analysis)
        for one in results.of(start.environment, start.variant)
        if one.analysis is not None
    ]
    if not runs:
        return []
    _, analysis = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
    spec = read_json(_spec_file(start), "spec")
    tried = measured_settings(base, number - 1)
    if not spec.get("command"):
        return propose(analysis, spec["settings"], tried)
    # What the script itself has in force was seen in its process; what cannot be applied from outside is not tried.
    seen = {name: value for name, value in analysis.settings.items() if not _standard_fault(name, value)}
    found = propose(analysis, {**seen, **spec["settings"]}, [{**seen, **each} for each in tried])
    return [each for each in found if set(each.settings) <= set(OUTSIDE)]


def measured_settings(base: Path, rounds: int) -> list[dict[str, Any]]:
    """Return the settings of every variant of a study and of its first `rounds` rounds."""
    plans = [read_json(base / "plan.json", "plan"), *(_round_plan(base, number) for number in range(1, rounds + 1))]
    return [variant["settings"] for plan in plans for variant in plan["variants"]]


def _standard_fault(name: str, value: Any) -> str:
    """Return what is wrong with a standard setting, or that it is none."""
    setting = table().get(name)
    return "is not known" if setting is None else setting.fault(value)


def _round_plan(base: Path, number: int) -> dict[str, Any]:
    return read_json(round_folder(base, number) / "plan.json", "plan")


def _spec_file(start: Start) -> Path:
    return start.folder / "runs" / start.environment / start.variant / "spec.json"


def _within_limits(
    base: Path, number: int, plan: dict[str, Any], proposals: list[Proposal]
) -> tuple[list[Proposal], str | None]:
    """Return the proposals that the study's limits leave room for, and why the others, or all, were left out."""
    limits, repeats = plan["remedies"], plan["repeats"]
    if not proposals:
        return [], "the diagnosis proposes no setting that was not tried"
    made = sum(len(_round_plan(base, before)["runs"]) for before in range(1, number))
    by_runs = (limits["max_runs"] - made) // repeats - 1  # the starting variant is measured again
    each = _seconds_per_run(base)
    by_time = int((limits["budget_minutes"] * 60 - made * each) / each / repeats) - 1 if each else by_runs
    room = max(0, min(by_runs, by_time))
    if room >= len(proposals):
        return proposals, None
    name = "max_runs" if by_runs <= by_time else "budget_minutes"
    left_out = f"{len(proposals) - room} of {len(proposals)} proposals left out: remedies.{name} is {limits[name]}"
    return proposals[:room], left_out


def _seconds_per_run(base: Path) -> float | None:
    """Return the mean seconds from start to end of the study's own runs; None if they do not say."""
    durations = []
    for path in base.glob("runs/*/*/*/run.json"):
        run = read_json(path, "run")
        if run.get("started") and run.get("ended"):
            begin, end = (datetime.fromisoformat(run[key]) for key in ("started", "ended"))
            durations.append((end - begin).total_seconds())
    return sum(durations) / len(durations) if durations else None


def _write(
    base: Path, number: int, plan: dict[str, Any], start: Start | None, proposals: list[Proposal], why: str | None
) -> None:
    folder = round_folder(base, number)
    variants, tried = _variants(plan, start, proposals)
    environments = (start.environment,) if start else (plan["environments"][0],)
    names = [variant["id"] for variant in variants] if len(variants) > 1 else []
    runs = interleave(environments, names, plan["repeats"], plan["seed"] + number)
    body = {
        **{key: value for key, value in plan.items() if key not in ("schema", "digest")},
        "environments": list(environments),
        "baseline": start.variant if start else plan["baseline"],
        "variants": variants,
        "dropped": [],
        "runs": [asdict(run) for run in runs],
        "expected_s": None,
    }
    write_if_changed(folder / "plan.json", stable_json({"schema": schema("plan"), "digest": digest(body), **body}))
    document = {
        "schema": schema("round"),
        "round": number,
        "from": start.variant if start else None,
        "proposals": tried,
        "stopped": why,
    }
    write_if_changed(folder / "round.json", stable_json(document))
    if start:
        _write_specs(folder, start, variants)


def _variants(
    plan: dict[str, Any], start: Start | None, proposals: list[Proposal]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the variants of a round, the one it starts from first, and what each proposal stands for."""
    if start is None:
        return [], []
    origin = read_json(_spec_file(start), "spec")
    baseline = next(item for item in plan["variants"] if item["id"] == plan["baseline"])
    variants = {start.variant: _entry(start.variant, origin["settings"], origin)}
    tried = []
    for proposal in proposals:
        settings = effective({**origin["settings"], **proposal.settings})
        changed = {name: value for name, value in settings.items() if value != baseline["settings"].get(name)}
        name = variant_id({**baseline["overrides"], **changed})
        if name not in variants:
            variants[name] = _entry(name, settings, origin)
            tried.append({"variant": name, **asdict(proposal)})
    return list(variants.values()), tried


def _entry(name: str, settings: dict[str, Any], origin: dict[str, Any]) -> dict[str, Any]:
    measured = {key: value for key, value in origin.items() if key not in PLACE} | {"settings": settings}
    return {"id": name, "settings": settings, "overrides": None, "digest": digest(measured)}


def _write_specs(folder: Path, start: Start, variants: list[dict[str, Any]]) -> None:
    origin = read_json(_spec_file(start), "spec")
    measured = {key: value for key, value in origin.items() if key not in PLACE}
    for variant in variants:
        place = {
            "experiment": origin["experiment"],
            "environment": start.environment,
            "variant": variant["id"],
            "baseline": variant["id"] == start.variant,
        }
        path = folder / "runs" / start.environment / variant["id"] / "spec.json"
        write_if_changed(path, stable_json(seal({**measured, "settings": variant["settings"]}, place)))
