"""Compare the variants of a study: from the files of its runs to `Comparison`.

The time that is compared is the timed part of a run divided by its steps: it holds whatever a user waits for, the
start of workers between two epochs included, which a median over steps would hide. Where both sides tell how many
samples they took, the time per sample is compared: a larger batch makes a step longer and training shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracelock.study import stats, verdicts
from tracelock.study.cases import make_case, run_row, time_samples
from tracelock.study.comparison import (
    Answer,
    Case,
    Comparison,
    ComparisonRow,
    FindingRow,
    Metric,
    RemedyRow,
)
from tracelock.study.disturbed import cores_of, disturbance
from tracelock.study.explain import finding_rows, kernel_rows, operator_rows
from tracelock.study.gather import Gathered, Measured, gather
from tracelock.study.method import method
from tracelock.study.nodes import across_nodes
from tracelock.study.outcome import Environment, RunRow
from tracelock.study.records import PlannedVariant, read_remedies
from tracelock.study.variants import effective
from tracelock.study.with_stacks import placed


def compare(folder: Path, min_effect: float = stats.MIN_EFFECT) -> Comparison:
    """Compare the variants of the study whose results lie in `folder`.

    Parameters
    ----------
    min_effect
        Smallest part of the reference's time that counts as a difference.

    Raises
    ------
    TracelockError
        If the folder holds no plan or no finished run.
    """
    results = gather(folder)
    plan, places = results.plan, results.environments
    factors = varying_factors(plan.variants)
    cases = [make_case(results, place, variant, factors) for place in places for variant in plan.variants]
    cases = [case for case in cases if case.planned]
    rows = _adjusted([row for case in cases for row in _comparisons(results, cases, case, min_effect)])
    findings = [row for case in cases for row in _findings(folder, results, cases, case, rows, min_effect)]
    operators = [row for case in cases for row in operator_rows(results.of(*case.key), case)]
    by_name = {place.name: place for place in places}
    by_key = {case.key: case for case in cases}
    return Comparison(
        experiment=plan.experiment,
        description=plan.description,
        digest=plan.digest,
        study_file=plan.study_file,
        workload=plan.workload,
        baseline=plan.baseline,
        repeats=plan.repeats,
        factors=tuple(factors),
        protocol={"timing": plan.timing, "profiler": plan.profiler, "limits": plan.limits, "device": plan.device},
        method=method(results, cases, min_effect),
        environments=places,
        answers=tuple(_answers(results, cases, rows, findings)),
        cases=tuple(cases),
        comparisons=tuple(rows),
        runs=tuple(_run_row(folder, one, by_name[one.run.environment], by_key[_key(one)]) for one in results.measured),
        missing=results.missing,
        excluded=results.excluded,
        findings=tuple(findings),
        operators=tuple(operators),
        kernels=tuple(row for case in cases for row in kernel_rows(results.of(*case.key), case)),
        remedies=read_remedies(folder),
        unknown=results.unknown | _incomparable(cases, rows) | across_nodes(results.measured, rows),
    )


def _run_row(folder: Path, one: Measured, place: Environment, case: Case) -> RunRow:
    """Return the row of a run, marked where what was sampled beside it shows that it had no quiet machine."""
    where = folder.joinpath("runs", one.run.environment, one.run.variant, str(one.run.repeat))
    return replace(run_row(one, place, case), disturbed=disturbance(where, cores_of(folder, one.run.environment)))


def _key(measured: Measured) -> tuple[str, str]:
    return measured.run.environment, measured.run.variant


def varying_factors(variants: Sequence[PlannedVariant]) -> list[str]:
    """Return the settings that distinguish the variants, in the order in which the variants name them.

    Where a variant does not say what distinguishes it (in a round of remedies), every setting that differs counts.
    """
    named = dict.fromkeys(name for variant in variants for name in variant.overrides or ())
    if any(variant.overrides is None for variant in variants):
        named |= dict.fromkeys(name for variant in variants for name in sorted(variant.settings))
    return [name for name in named if not _same(variant.settings.get(name) for variant in variants)]


def difference(
    results: Gathered, one: tuple[str, str], other: tuple[str, str], min_effect: float
) -> tuple[Metric, verdicts.Difference]:
    """Compare two cases that both have runs, by the time per sample where both know it."""
    runs, reference = results.of(*one), results.of(*other)
    rng = stats.generator(results.plan.seed, *one, *other)
    for metric in ("time per sample", "step time"):
        times, reference_times = time_samples(runs, metric), time_samples(reference, metric)
        if times and reference_times:
            return metric, verdicts.difference(times, reference_times, rng, min_effect)
    raise ValueError(f"{one} or {other} has no run")


def _comparisons(results: Gathered, cases: Sequence[Case], case: Case, min_effect: float) -> Iterator[ComparisonRow]:
    """Yield a case against the baseline of its environment, and against itself in the first environment."""
    first = results.environments[0].name
    for key in ((case.environment, results.plan.baseline), (first, case.variant)):
        reference = next((other for other in cases if other.key == key), None)
        if reference is None or key == case.key or case.step is None or reference.step is None:
            continue
        metric, found = difference(results, case.key, key, min_effect)
        yield ComparisonRow(
            *case.key,
            case.unlocked or reference.unlocked,
            *key,
            metric=metric,
            runs=case.runs,
            reference_runs=reference.runs,
            difference=found,
            step_ratio=case.step.value / reference.step.value,
            changed=_changed(reference.settings, case.settings),
        )


def _adjusted(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Return the rows, each adjusted for those beside it: all with one baseline, or all between two environments."""
    families: dict[tuple[bool, str], list[ComparisonRow]] = {}
    for row in rows:
        families.setdefault((row.within, row.environment), []).append(row)
    found = {
        (row.key, row.within): replace(row, difference=difference)
        for family in families.values()
        for row, difference in zip(family, verdicts.adjusted([row.difference for row in family]), strict=True)
    }
    return [found[row.key, row.within] for row in rows]


def _findings(
    folder: Path, results: Gathered, cases: Sequence[Case], case: Case, rows: Sequence[ComparisonRow], min_effect: float
) -> Iterator[FindingRow]:
    """Yield the findings of a case; a remedy that a variant of the study applies comes with what it brought."""
    for row in finding_rows(results.of(*case.key), case):
        remedies = [_tested(results, cases, case, rows, remedy, min_effect) for remedy in row.remedies]
        where = placed(folder, *case.key, row.code) if row.rank == 1 else None
        yield replace(row, remedies=tuple(remedies), placed=where)


def _tested(
    results: Gathered,
    cases: Sequence[Case],
    case: Case,
    rows: Sequence[ComparisonRow],
    remedy: RemedyRow,
    min_effect: float,
) -> RemedyRow:
    wanted = effective({**case.settings, **remedy.settings})
    if not remedy.settings or wanted == case.settings:
        return remedy
    for other in cases:
        if other.environment == case.environment and other.settings == wanted and other.runs:
            told = next((row.difference for row in rows if case.baseline and row.within and row.key == other.key), None)
            found = told or difference(results, other.key, case.key, min_effect)[1]
            return replace(remedy, tested_by=other.variant, difference=found)
    return remedy


def _answers(
    results: Gathered, cases: Sequence[Case], rows: Sequence[ComparisonRow], findings: Sequence[FindingRow]
) -> Iterator[Answer]:
    for place in results.environments:
        case = next((one for one in cases if one.key == (place.name, results.plan.baseline)), None)
        if case is None:
            continue
        main = next((row for row in findings if (row.environment, row.variant) == case.key), None)
        faster = [row for row in rows if row.within and row.environment == place.name and row.verdict == "faster"]
        best = min(faster, key=lambda row: row.difference.ratio.value, default=None)
        yield Answer(place.name, case, main, best)


def _incomparable(cases: Sequence[Case], rows: Sequence[ComparisonRow]) -> dict[str, str]:
    """Return why cases have no comparison with the baseline."""
    compared = {row.key for row in rows if row.within}
    return {
        f"comparisons/{case.environment}/{case.variant}": "no finished run"
        if not case.runs
        else "the baseline of this environment has no finished run"
        for case in cases
        if not case.baseline and case.key not in compared
    }


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = sorted({*before, *after})
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _same(values: Iterator[Any]) -> bool:
    first, *others = values
    return all(value == first and type(value) is type(first) for value in others)
