"""Two sides compared: whether they can be, what may be said about the difference, and what changed.

The second side (after) is held against the first (before): a ratio below 1 means that it takes less time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracelock.analysis.difference import TraceDifference, trace_difference
from tracelock.diagnosis.model import Diagnosed
from tracelock.errors import Problem, TracelockError
from tracelock.study import stats, verdicts
from tracelock.study.cases import time_samples
from tracelock.study.comparison import Metric
from tracelock.study.gather import Measured
from tracelock.study.sides import Side
from tracelock.study.verdicts import Difference

ONE_SAMPLE = "one sample each: no verdict on noise"
LEAST_ALIKE = 0.2  # of the operators' time, in operators that both traces have: below it they are of other workloads


@dataclass(frozen=True)
class CaseDifference:
    """One case of both sides: a variant of two studies, or the only one of two runs."""

    name: str
    metric: Metric
    before_runs: int
    after_runs: int
    before_us: float
    after_us: float
    difference: Difference


@dataclass(frozen=True)
class Pair:
    """The document ``tracelock/pair/1``."""

    before: str
    after: str
    kind: str
    notes: tuple[str, ...]  # what makes the comparison weaker than it looks
    cases: tuple[CaseDifference, ...]  # empty for bare traces
    only_before: tuple[str, ...]  # cases of one side alone
    only_after: tuple[str, ...]
    ratio: float | None  # of the step: that of the first case, of the traces' steps where there is no run
    verdict: str
    changed: TraceDifference | None
    settings: dict[str, tuple[Any, Any]]
    packages: dict[str, tuple[str | None, str | None]] | None

    def above(self, share: float) -> list[str]:
        """Return the cases that take more than `share` longer: by their verdict, or by the figure of bare traces."""
        if not self.cases:
            return [self.after] if self.ratio is not None and self.ratio > 1 + share else []
        return [one.name for one in self.cases if one.difference.ratio.value > 1 + share and _counts(one.difference)]


def compare_sides(before: Side, after: Side, anyway: bool = False, min_effect: float = stats.MIN_EFFECT) -> Pair:
    """Compare two sides.

    Parameters
    ----------
    anyway
        Compare what does not go together, too; the reasons become notes.

    Raises
    ------
    TracelockError
        If the sides do not go together; all reasons are given.
    """
    refused, notes = list(_refusals(before, after)), list(_notes(before, after))
    if refused and not anyway:
        places = f"{before.path} and {after.path}"
        raise TracelockError([Problem(places, reason, "--anyway compares them all the same") for reason in refused])
    cases = _cases(before, after, min_effect)
    changed = _changed(before, after)
    ratio = cases[0].difference.ratio.value if cases else changed.ratio if changed else None
    return Pair(
        before=str(before.path),
        after=str(after.path),
        kind=before.kind if before.kind == after.kind else f"{before.kind} and {after.kind}",
        notes=(*refused, *notes),
        cases=tuple(cases),
        only_before=tuple(name for name in before.runs if name not in after.runs and before.kind == "study"),
        only_after=tuple(name for name in after.runs if name not in before.runs and after.kind == "study"),
        ratio=ratio,
        verdict=cases[0].difference.words if cases else ONE_SAMPLE,
        changed=changed,
        settings=_settings(before, after),
        packages=_packages(before, after),
    )


def _counts(difference: Difference) -> bool:
    return difference.verdict in ("slower", None)


def _cases(before: Side, after: Side, min_effect: float) -> list[CaseDifference]:
    """Return the cases of both sides, the baseline first; of two sets of runs the only one, whatever its name."""
    if before.kind == after.kind == "study":
        names = [name for name in before.runs if name in after.runs]
        names.sort(key=lambda name: name != before.baseline)
        pairs = [(name, before.runs[name], after.runs[name]) for name in names]
    elif before.runs and after.runs:
        pairs = [(after.first[0].run.variant, before.first, after.first)]
    else:
        return []
    found = [_case(*pair, min_effect) for pair in pairs]
    judged = verdicts.adjusted([one.difference for one in found])
    return [replace(one, difference=difference) for one, difference in zip(found, judged, strict=True)]


def _case(name: str, before: Sequence[Measured], after: Sequence[Measured], min_effect: float) -> CaseDifference:
    metric: Metric
    for metric in ("time per sample", "step time"):
        times, reference = time_samples(after, metric), time_samples(before, metric)
        if times and reference:
            found = verdicts.difference(times, reference, stats.generator(1, name), min_effect)
            medians = [stats.median_interval(runs, stats.generator(1, name)).value for runs in (reference, times)]
            return CaseDifference(name, metric, len(before), len(after), medians[0], medians[1], found)
    raise ValueError(f"{name} has no run")


def _changed(before: Side, after: Side) -> TraceDifference | None:
    one, other = _analysis(before), _analysis(after)
    return trace_difference(one, other) if one and other else None


def _analysis(side: Side) -> Diagnosed | None:
    """Return the analysis of a trace, of runs that with the median step time."""
    if side.analysis:
        return side.analysis
    known = [one for one in side.first if one.analysis]
    known.sort(key=lambda one: one.run.timed.duration_us / one.run.timed.steps)
    return known[(len(known) - 1) // 2].analysis if known else None


def _refusals(before: Side, after: Side) -> Iterator[str]:
    """Yield why two sides do not go together."""
    if before.workload and after.workload and before.workload != after.workload:
        yield f"measure other workloads: {before.workload} and {after.workload}"
    one, other = _hardware(before), _hardware(after)
    if one and other and one != other:
        yield f"were made on other hardware: {', '.join(sorted(one))} and {', '.join(sorted(other))}"
    for side in (before, after):
        if side.unlocked:
            yield f"{side.path} was made in an environment that has no lock or differs from it"
    first, second = _analysis(before), _analysis(after)
    if first and second and not (before.workload and after.workload):
        alike = _alike(first, second)
        if alike is not None and alike < LEAST_ALIKE:
            yield f"seem to be of other workloads: operators of both take {100 * alike:.0f} % of the time"
    if before.kind == after.kind == "study" and not set(before.runs) & set(after.runs):
        yield "have no variant in common"


def _hardware(side: Side) -> set[str]:
    runs = {run.run.device.name or run.run.device.type for runs in side.runs.values() for run in runs}
    if runs or side.analysis is None:
        return runs
    used = {gpu.id for gpu in side.analysis.gpus}
    return {device.name for device in side.analysis.trace.devices if device.id in used and device.name}


def _alike(before: Diagnosed, after: Diagnosed) -> float | None:
    """Return the smaller share of both traces' operator time that is in operators which the other has, too."""
    shares = []
    for one, other in ((before, after), (after, before)):
        whole = sum(row.self_cpu_us for row in one.operators)
        names = {row.name for row in other.operators}
        if not whole or not names:
            return None
        shares.append(sum(row.self_cpu_us for row in one.operators if row.name in names) / whole)
    return min(shares)


def _notes(before: Side, after: Side) -> Iterator[str]:
    """Yield what makes the comparison weaker than it looks."""
    if not before.runs or not after.runs:
        yield f"bare traces: {ONE_SAMPLE}; profiled steps are slower than others"
    one, other = _analysis(before), _analysis(after)
    sources = [each.step.source for each in (one, other) if each]
    if any(source != "ProfilerStep" for source in sources):
        yield "no steps are marked: whole recordings are compared, which may hold different amounts of work"
    if one and other and one.trace.rank != other.trace.rank:
        yield f"other ranks: {one.trace.rank} and {other.trace.rank}"
    hosts = [{run.run.host for runs in side.runs.values() for run in runs} for side in (before, after)]
    if all(hosts) and hosts[0] != hosts[1]:
        yield f"made on other machines: {', '.join(sorted(hosts[0]))} and {', '.join(sorted(hosts[1]))}"
    if all(hosts):
        yield "both sides were measured one after the other and not interleaved: a drift of the machine counts, too"


def _settings(before: Side, after: Side) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ between the analyses that are compared, where both say them."""
    one, other = _analysis(before), _analysis(after)
    if not one or not other or not one.settings or not other.settings:
        return {}
    names = sorted({*one.settings, *other.settings})
    pairs = {name: (one.settings.get(name), other.settings.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _packages(before: Side, after: Side) -> dict[str, tuple[str | None, str | None]] | None:
    if before.packages is None or after.packages is None:
        return None
    names = sorted({*before.packages, *after.packages})
    pairs = {name: (before.packages.get(name), after.packages.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
