"""The work of ``tracelock cure``: a study of the script whose remedies are tested, and what that means for its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from tracelock.cli import _format as fmt
from tracelock.cli._profile import default_folder
from tracelock.io import read_json, write_text
from tracelock.runner.command.factors import CHANGES_RESULT

_LOSSES = 10
_ALIKE = 1e-3  # relative difference of losses that another order of summing makes, too


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line."""

    command: Sequence[str]
    output: Path | None
    repeats: int
    rounds: int
    budget: float
    warmup: int
    timed: int
    limit_s: float


def run(asked: Asked) -> int:
    """Measure the script and its remedies; return the exit code."""
    from tracelock.study.drive import run_study

    folder = asked.output or default_folder(asked.command)
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in folder.name).lstrip("._-")
    study = folder / "study.yaml"
    write_text(study, yaml.safe_dump(study_of(asked, name or "cure"), sort_keys=False))
    console = Console(highlight=False, soft_wrap=True)
    outcome = run_study(study, str(folder), None, [], console)
    if outcome.exit_code or not (outcome.folder / "remedies.json").is_file():
        return outcome.exit_code or 1
    for line in answer(outcome.folder):
        console.print(Text(line))
    console.print(Text(f"\nReport: {outcome.folder / 'report.html'}", "dim"))
    return 0


def study_of(asked: Asked, name: str) -> dict[str, Any]:
    """Return the study file of a script alone."""
    return {
        "name": name,
        "description": "What slows this script, and what helps.",
        "workload": {"command": list(asked.command)},
        "baseline": {},
        "repeats": asked.repeats,
        "timing": {"warmup_steps": asked.warmup, "steps": asked.timed},
        "limits": {"max_duration_s": asked.limit_s},
        "allow_unlocked": True,  # the script has an environment of its own; that of this program says nothing of it
        "remedies": {"test": True, "max_rounds": asked.rounds, "budget_minutes": asked.budget, "max_runs": 60},
    }


def answer(folder: Path) -> Iterator[str]:
    """Yield what was tried and what it brought, and what to change in the code for what helped."""
    document = read_json(folder / "remedies.json", "remedies")
    base = _a_run(folder / "runs") or {}
    tried = [(one, each) for one in document["rounds"] for each in one["tried"]]
    if not tried:
        yield f"Nothing to try: {document['stopped']}."
        return
    yield ""
    yield "Tried on your script, unchanged:"
    for one, each in tried:
        yield from _tried(each, base, _a_run(folder / "rounds" / str(one["round"]) / "runs", each["to"]))


def _tried(each: Mapping[str, Any], base: Mapping[str, Any], run: Mapping[str, Any] | None) -> Iterator[str]:
    settings = ", ".join(f"{name}={value}" for name, value in each["settings"].items())
    yield f"- {settings}: {_brought(each)}"
    if run is None:
        return
    changes = run["script"]["changes"]
    for change in changes:
        place = change["place"] or "the whole process"
        yield f"    {place}: {change['setting']}={change['from']} → {change['to']}"
    marked = sorted({CHANGES_RESULT[change["setting"]] for change in changes if change["setting"] in CHANGES_RESULT})
    if marked:
        yield f"    changes what is computed ({', '.join(marked)}): {losses(base, run)}"


def _brought(each: Mapping[str, Any]) -> str:
    if each["ratio"] is None:
        return f"not measured: {each['why']}"
    change = 1 - each["ratio"]
    word = "less" if change >= 0 else "more"
    text = f"{each['verdict']}, {fmt.share(abs(change))} {word} time a step"
    if each["ratio_low"] is not None:
        low, high = 1 - each["ratio_high"], 1 - each["ratio_low"]
        text += f" ({100 * low:+.0f} to {100 * high:+.0f} % less, {each['runs']} runs)"
    return text


def losses(base: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Return how the first losses of two runs compare, in words."""
    before, after = (dict(map(tuple, each["script"]["losses"])) for each in (base, run))
    shared = sorted(set(before) & set(after))[:_LOSSES]
    if not shared:
        return "no losses to compare"
    apart = max(abs(after[step] - before[step]) / max(abs(before[step]), 1e-12) for step in shared)
    shown = ", ".join(f"{before[step]:.4g}/{after[step]:.4g}" for step in shared[:3])
    if apart <= _ALIKE:
        return f"losses of the first {len(shared)} steps are the same within {_ALIKE:g} ({shown})"
    return f"losses of the first {len(shared)} steps differ by up to {fmt.share(apart)} ({shown}, before/after)"


def _a_run(folder: Path, variant: str | None = None) -> dict[str, Any] | None:
    """Return a run of a variant below a folder of runs, of any where none is named."""
    for path in sorted(folder.glob("*/*/*/run.json")):
        if variant is None or path.parent.parent.name == variant:
            return read_json(path, "run")
    return None
