"""The line that a person wants of each variant: its figures, how it compares, what is found and what to change."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracelock.study.comparison import Case, Comparison, ComparisonRow, FindingRow, RemedyRow
from tracelock.study.outcome import MissingRun

SHOWN = 40  # variants that a figure or a page shows; a person compares no more, and the tables hold all
_SLOWEST = 5

NOISE = 0.15  # by which equal runs of a quiet machine do not differ
FEW = 2  # runs from which on a variant shows how much its runs differ


@dataclass(frozen=True)
class Line:
    """A case with its comparison against the baseline and its main finding."""

    case: Case
    against: ComparisonRow | None
    finding: FindingRow | None

    @property
    def remedy(self) -> RemedyRow | None:
        """The first remedy of the main finding."""
        return self.finding.remedies[0] if self.finding and self.finding.remedies else None

    @property
    def remedy_text(self) -> str | None:
        """The first remedy as text: its settings, else the advice for the code."""
        return remedy_text(self.remedy) if self.remedy else None


def overview(comparison: Comparison) -> list[Line]:
    """Return the lines of all cases, by environment: the baseline, then from fast to slow, cases without runs last."""
    order = {place.name: number for number, place in enumerate(comparison.environments)}
    lines = [_line(comparison, case) for case in comparison.cases]
    return sorted(lines, key=lambda line: (order[line.case.environment], not line.case.baseline, _slowness(line)))


def chosen(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that a figure or page has room for: of each environment the baseline, fastest and slowest.

    Parameters
    ----------
    lines
        In the order of `overview`.
    """
    if len(lines) <= SHOWN:
        return list(lines)
    places = [list(group) for _, group in itertools.groupby(lines, key=lambda line: line.case.environment)]
    each = max(SHOWN // len(places), _SLOWEST + 2)
    return [line for group in places for line in (group if len(group) <= each else _ends(group, each))]


def chosen_text(lines: Sequence[Line]) -> str | None:
    """Return which of `lines` are `chosen` and where the others are, None where all are."""
    shown = len(chosen(lines))
    if shown == len(lines):
        return None
    return (
        f"{shown} of {len(lines)} variants are shown: of each environment the baseline, the fastest and the "
        f"{_SLOWEST} slowest. All are in tables/variants.csv."
    )


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings as ``num_workers=4, pin_memory=True``."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in settings.items())


def value_text(value: Any) -> str:
    """Return a setting's value as a person writes it in Python or in a study."""
    return value if isinstance(value, str) else str(value) if not isinstance(value, dict | list) else json.dumps(value)


def noise_text(comparison: Comparison) -> str:
    """Return that what is unclear may be the machine's noise, where equal runs differ much; empty where they do not."""
    tried = [edge.unclear for one in (comparison.remedies.rounds if comparison.remedies else ()) for edge in one.tried]
    if not any((*tried, *(row.verdict == "unclear" for row in comparison.comparisons if row.within))):
        return ""
    scatter = [_scatter(comparison, case) for case in comparison.cases if case.runs >= FEW]
    if max(scatter, default=0.0) < NOISE:
        return ""
    return (
        f"Equal runs of one variant differ by up to {100 * max(scatter):.0f} %: what is unclear may be the noise of "
        "this machine. Measure again while nothing else runs, or ask for more runs (precision: 3 %)."
    )


def _scatter(comparison: Comparison, case: Case) -> float:
    """Return by how much the slowest run of a case is slower than its fastest, as a share of the fastest."""
    times = [run.step_us for run in comparison.runs if (run.environment, run.variant) == case.key]
    return max(times) / min(times) - 1


def remedy_text(remedy: RemedyRow) -> str:
    """Return a remedy as text: its settings, else the advice for the code."""
    return settings_text(remedy.settings) or remedy.code or remedy.expect


def _line(comparison: Comparison, case: Case) -> Line:
    findings = comparison.findings_of(case)
    return Line(case, comparison.against_baseline(case), findings[0] if findings else None)


def _ends(group: list[Line], size: int) -> list[Line]:
    """Return the first lines of an environment, and its slowest ones that have runs."""
    ran = [line for line in group if line.case.runs] or group
    return ran if len(ran) <= size else [*ran[: size - _SLOWEST], *ran[-_SLOWEST:]]


def _slowness(line: Line) -> float:
    """Return what a case is sorted by: its ratio to the baseline; its step time where there is none; then last."""
    if line.against:
        return line.against.difference.ratio.value
    return line.case.step.value if line.case.step else float("inf")


@dataclass(frozen=True)
class Loss:
    """The runs of a case that are missing for one reason."""

    case: str  # environment/variant
    repeats: tuple[int, ...]
    reason: str
    log: str | None  # of the first of them

    @property
    def runs(self) -> str:
        """Which repeats, as a person reads it."""
        numbers = ", ".join(map(str, self.repeats))
        return f"run{'s' if len(self.repeats) != 1 else ''} {numbers}"


def losses(comparison: Comparison) -> list[Loss]:
    """Return what is missing, the runs of a case that failed for one reason together, in the order of the plan."""
    found: dict[tuple[str, str], list[MissingRun]] = {}
    for run in comparison.missing:
        found.setdefault((f"{run.environment}/{run.variant}", run.reason), []).append(run)
    return [
        Loss(case, tuple(run.repeat for run in runs), reason, next((run.log for run in runs if run.log), None))
        for (case, reason), runs in found.items()
    ]
