"""One recording more: the baseline with Python stacks, where its main finding has no line of the user's code.

Stacks slow down what they record, so the runs that are compared go without. This one is compared with nothing: it lies
apart below ``stacks/``, a plan of one run at most, and lends its lines to the findings of the case that it repeats.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tracelock.analysis.document import read as read_analysis
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.diagnosis.where import lines_of, stacks_could_place
from tracelock.errors import TracelockError
from tracelock.io import digest, read_json, schema, stable_json
from tracelock.study.gather import Measured, gather
from tracelock.study.plan import PLACE, Run, seal, write_if_changed

FOLDER = "stacks"


def plan_stacks(base: Path) -> None:
    """Write ``stacks/plan.json`` and the spec of its run below a study's results; the plan of none where none helps."""
    plan = read_json(base / "plan.json", "plan")
    environment, variant = plan["environments"][0], plan["baseline"]
    asked = plan.get("stacks", True) and not plan["profiler"]["with_stack"]
    found = _typical(base, environment, variant) if asked else None
    wanted = found is not None and stacks_could_place(found)
    if wanted:
        _write_spec(base, environment, variant)
    body = {
        **{key: value for key, value in plan.items() if key not in ("schema", "digest")},
        "environments": [environment],
        "variants": [each for each in plan["variants"] if each["id"] == variant] if wanted else [],
        "dropped": [],
        "repeats": 1,
        "runs": [asdict(Run(environment, variant, 1, 0))] if wanted else [],
        "expected_s": None,
    }
    write_if_changed(
        base / FOLDER / "plan.json", stable_json({"schema": schema("plan"), "digest": digest(body), **body})
    )


def placed(base: Path, environment: str, variant: str, code: str) -> str | None:
    """Return what the recording with stacks says of a finding, with the user's lines; None where there is none."""
    path = base / FOLDER / "runs" / environment / variant / "1" / "analysis.json"
    try:
        found = read_analysis(path, Diagnosed)
    except (TracelockError, OSError):
        return None
    with_lines = [each for each in found.findings if lines_of(each)]
    same = [each for each in with_lines if each.code == code]
    return _told((same or with_lines)[0]) if with_lines else None


def _told(finding: Finding) -> str:
    """Return the facts of a finding that name lines."""
    return "; ".join(fact.text for fact in finding.evidence if any(row.code for row in fact.rows))


def _typical(base: Path, environment: str, variant: str) -> Diagnosed | None:
    """Return the analysis of the run with the median step time; None where no run of the case was analysed."""
    try:
        runs: list[Measured] = [one for one in gather(base).of(environment, variant) if one.analysis is not None]
    except TracelockError:  # not a single run succeeded
        return None
    runs.sort(key=lambda one: one.run.timed.duration_us / one.run.timed.steps)
    return runs[(len(runs) - 1) // 2].analysis if runs else None


def _write_spec(base: Path, environment: str, variant: str) -> None:
    """Write the spec of the run: the case's own, but for the stacks."""
    origin: dict[str, Any] = read_json(base / "runs" / environment / variant / "spec.json", "spec")
    measured = {key: value for key, value in origin.items() if key not in PLACE}
    measured["profiler"] = {**origin["profiler"], "with_stack": True}
    place = {key: origin[key] for key in PLACE if key not in ("schema", "digest")}
    path = base / FOLDER / "runs" / environment / variant / "spec.json"
    write_if_changed(path, stable_json(seal(measured, place)))
