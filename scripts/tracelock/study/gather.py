"""Collect what the runs of a study left behind: every planned run is found, missing, or left out with a reason."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.analysis.document import read as read_analysis
from tracelock.diagnosis.model import Diagnosed
from tracelock.errors import TracelockError
from tracelock.io import read_json
from tracelock.study.failures import failure_line, failure_of
from tracelock.study.outcome import Environment, ExcludedRun, MissingRun
from tracelock.study.records import PlanFile, PlannedVariant, RunFile, read_plan, read_run, read_waves

# So many packages are named where an environment differs from its lock.
_NAMED = 3


@dataclass(frozen=True)
class Measured:
    """A run and, where its trace could be analysed, its analysis."""

    run: RunFile
    analysis: Diagnosed | None


@dataclass(frozen=True)
class Gathered:
    """The results of a study."""

    plan: PlanFile
    environments: tuple[Environment, ...]
    measured: tuple[Measured, ...]
    missing: tuple[MissingRun, ...]
    excluded: tuple[ExcludedRun, ...]
    unknown: dict[str, str]

    def of(self, environment: str, variant: str) -> list[Measured]:
        """Return the runs of one case, by repeat."""
        return self._by_case.get((environment, variant), [])

    @functools.cached_property
    def _by_case(self) -> dict[tuple[str, str], list[Measured]]:
        found: dict[tuple[str, str], list[Measured]] = {}
        for one in sorted(self.measured, key=lambda one: one.run.repeat):
            found.setdefault((one.run.environment, one.run.variant), []).append(one)
        return found

    def planned(self, environment: str, variant: str) -> int:
        """Return how many runs of a case were to be made: those found and those missing."""
        missing = sum((one.environment, one.variant) == (environment, variant) for one in self.missing)
        return len(self.of(environment, variant)) + missing


def gather(folder: Path) -> Gathered:
    """Read a results folder.

    Raises
    ------
    TracelockError
        If there is no plan, or not a single run.
    """
    plan = read_plan(folder)
    unknown: dict[str, str] = {}
    environments = tuple(_environment(folder, name) for name in plan.environments)
    marks = {place.name: place.unlocked for place in environments}
    measured, excluded = _found(folder, plan, marks, unknown)
    missing = tuple(_missing(folder, plan, marks, measured, excluded))
    if not measured:
        raise TracelockError(f"{folder}: holds no finished run of its plan ({len(missing)} missing)", exit_code=1)
    return Gathered(plan, environments, tuple(measured), missing, tuple(excluded), unknown)


def _found(
    folder: Path, plan: PlanFile, marks: Mapping[str, bool | None], unknown: dict[str, str]
) -> tuple[list[Measured], list[ExcludedRun]]:
    variants = {variant.id: variant for variant in plan.variants}
    measured: list[Measured] = []
    excluded: list[ExcludedRun] = []
    for path in sorted(folder.glob("runs/*/*/*/run.json")):
        environment, variant, repeat = path.parent.parts[-3:]
        where = (environment, variant, int(repeat) if repeat.isdigit() else -1)
        reason, run = _usable(path, plan, variants.get(variant), where)
        if run is None:
            excluded.append(ExcludedRun(*where, marks.get(environment), reason))
        else:
            measured.append(Measured(run, _analysis(path.parent, unknown)))
    return measured, excluded


def _usable(
    path: Path, plan: PlanFile, variant: PlannedVariant | None, where: tuple[str, str, int]
) -> tuple[str, RunFile | None]:
    """Return a run that belongs to the plan, or the reason why it does not."""
    if variant is None or where[0] not in plan.environments:
        return "is not in the plan", None
    try:
        run = read_run(path)
    except TracelockError as error:
        return str(error.problems[0].what), None
    if run.digest != variant.digest:
        return "was made with other settings than the plan has now", None
    if (run.environment, run.variant, run.repeat) != where:
        return "says that it belongs to another folder", None
    if not run.timed.steps or run.timed.duration_us <= 0:
        return "holds no timed step", None
    return "", run


def _analysis(folder: Path, unknown: dict[str, str]) -> Diagnosed | None:
    path = folder / "analysis.json"
    key = "/".join(("runs", *folder.parts[-3:], "analysis"))
    if not path.is_file():
        unknown[key] = "the trace of this run was not analysed"
        return None
    try:
        return read_analysis(path, Diagnosed)
    except TracelockError as error:
        unknown[key] = _why_none(path) or error.problems[0].what
        return None


def _why_none(path: Path) -> str | None:
    """Return the reason that stands in the place of an analysis, None where there is none."""
    try:
        return str(read_json(path, "no-analysis")["reason"])
    except (TracelockError, KeyError):
        return None


def _missing(
    folder: Path,
    plan: PlanFile,
    marks: Mapping[str, bool | None],
    measured: list[Measured],
    excluded: list[ExcludedRun],
) -> Iterator[MissingRun]:
    found = {(one.run.environment, one.run.variant, one.run.repeat) for one in measured}
    refused = {(one.environment, one.variant, one.repeat): one.reason for one in excluded}
    variants = {variant.id for variant in plan.variants}
    waves = [run for run in read_waves(folder) if run.variant in variants and run.environment in plan.environments]
    for planned in (*plan.runs, *waves):
        where = (planned.environment, planned.variant, planned.repeat)
        if where in found:
            continue
        log = folder.joinpath("runs", *map(str, where), "log.txt")
        reason = refused.get(where) or _why_missing(log)
        mark = marks.get(planned.environment)
        yield MissingRun(*where, mark, reason, log.relative_to(folder).as_posix() if log.is_file() else None)


def _why_missing(log: Path) -> str:
    """Return why a run has no result: its failure with exception, file and line, as far as it is known."""
    failure = failure_of(log.with_name("run.json"))
    if failure:
        return f"failed: {failure_line(failure)}"
    return "failed" if log.is_file() else "was not made"


def _environment(folder: Path, name: str) -> Environment:
    path = folder / "envs" / name / "check.json"
    if not path.is_file():
        return Environment(name, None, None, "was not checked against a lock")
    try:
        check = read_json(path, "envcheck")
    except TracelockError as error:
        return Environment(name, None, None, f"its check {error.problems[0].what}")
    digest = check.get("digest")
    return Environment(name, bool(check.get("unlocked")), str(digest) if digest else None, _check_note(check))


def _check_note(check: Mapping[str, Any]) -> str:
    """Return what the gate found, in words: the first packages that differ are named."""
    fatal = [difference for difference in check.get("differences", []) if difference.get("fatal", True)]
    if fatal:
        names = list(dict.fromkeys(str(difference["name"]) for difference in fatal if difference.get("name")))
        named = ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
        places = f"{len(fatal)} place{'s' if len(fatal) != 1 else ''}"
        return f"differs from its lock in {places}" + (f": {named}" if named else "")
    return "has no lock" if check.get("ok") is None else "equals its lock"
