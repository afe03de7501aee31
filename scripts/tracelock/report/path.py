"""One best, one path to it, one next step: what the study's own variants and the tested remedies came to together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tracelock.analysis.parts import STEP_LABELS
from tracelock.report.text import percent, saved, time
from tracelock.study.comparison import Answer, Case, Comparison, FindingRow
from tracelock.study.overview import remedy_text
from tracelock.study.records import Edge, Left
from tracelock.study.stats import Interval

HEALTHY = "no-bottleneck"


@dataclass(frozen=True)
class BestPath:
    """The way from the baseline to the fastest that was measured. Without edges nothing was clearly faster."""

    edges: tuple[Edge, ...]
    metric: str
    left: Left | None

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that differ from the baseline's."""
        changed: dict[str, Any] = {}
        for edge in self.edges:
            changed |= edge.settings
        return changed

    @property
    def saved(self) -> str:
        """What the whole path saves: with its interval where it is one step, as a product where it is several."""
        if len(self.edges) == 1 and (interval := _interval(self.edges[0])):
            return saved(interval)
        return f"{percent(1 - (_product(self.edges) or 1.0))} less time (product of {len(self.edges)} measured steps)"

    @property
    def per(self) -> str:
        """What the time is of."""
        return "sample" if self.metric == "time per sample" else "step"


def best_path(comparison: Comparison, answer: Answer) -> BestPath:
    """Return the one path of an environment: that of the tested remedies where they lead further than any variant."""
    own = _own(comparison, answer)
    tested = comparison.remedies
    if tested is None or not tested.path or answer.environment != comparison.environments[0].name:
        return own
    ratio = _product(tested.path)
    if ratio is None or (own.edges and (_product(own.edges) or 1.0) < ratio):
        return own
    metric = next((edge.metric for edge in tested.path if edge.metric), own.metric)
    return BestPath(tested.path, metric, tested.left)


def cures(finding: FindingRow | None, settings: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether settings are what a finding's remedies propose, and nothing besides.

    A number that is moved the same way as a remedy moves it counts: two workers where four were proposed.
    """
    if finding is None or not settings:
        return False
    proposed: dict[str, list[Any]] = {}
    for remedy in finding.remedies:
        for name, value in remedy.settings.items():
            proposed.setdefault(name, []).append(value)
    return all(
        any(_same_way(before.get(name), value, wanted) for wanted in proposed.get(name, ()))
        for name, value in settings.items()
    )


def why_faster(comparison: Comparison, before: Case, after: Case) -> str:
    """Return which part of the time shrank most between two cases, per sample where both tell; empty if unknown."""
    one, other = _per_unit(before), _per_unit(after)
    if one is None or other is None or (one[1] != other[1]):
        return ""
    changes = {name: one[0][name] - other[0][name] for name in STEP_LABELS}
    whole = sum(changes.values())
    name, largest = max(changes.items(), key=lambda change: change[1])
    if whole <= 0 or largest < 0.2 * whole:
        return ""
    told = f"{STEP_LABELS[name]}: {time(one[0][name])} a {one[1]} in the baseline, {time(other[0][name])} in it"
    return f"{told}, {percent(min(largest / whole, 1.0))} of the difference between their traces"


def _per_unit(case: Case) -> tuple[dict[str, float], str] | None:
    """Return the parts of a profiled step, divided by its samples where they are known, and what they are of."""
    parts = case.explained.breakdown
    if parts is None or case.step is None:
        return None
    samples = case.step.value / case.sample.value if case.sample else None
    return {part.name: getattr(parts, part.name) / (samples or 1.0) for part in fields(parts)}, (
        "sample" if samples else "step"
    )


def _own(comparison: Comparison, answer: Answer) -> BestPath:
    best = answer.best
    if best is None:
        return BestPath((), "", None)
    ratio = best.difference.ratio
    changed = {name: after for name, (_, after) in best.changed.items()}
    edge = Edge(
        source=best.reference_variant,
        target=best.variant,
        finding=None,
        settings=changed,
        ratio=ratio.value,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        verdict=best.verdict,
        kind="factor",
        metric=best.metric,
    )
    return BestPath((edge,), best.metric, _left(comparison, best.key))


def _left(comparison: Comparison, key: tuple[str, str]) -> Left | None:
    case = next((case for case in comparison.cases if case.key == key), None)
    found = comparison.findings_of(case) if case else []
    if not found:
        return None
    advice = next((remedy for remedy in found[0].remedies if remedy.difference is None), None)
    return Left(found[0].code, found[0].title, remedy_text(advice) if advice else None)


def _same_way(before: Any, after: Any, wanted: Any) -> bool:
    if after == wanted:
        return True
    numbers = [value for value in (before, after, wanted) if isinstance(value, int | float)]
    if len(numbers) < 3 or any(isinstance(value, bool) for value in numbers):
        return False
    return bool((after > before) == (wanted > before))


def _product(path: Sequence[Edge]) -> float | None:
    ratios = [edge.ratio for edge in path if edge.ratio is not None]
    return math.prod(ratios) if len(ratios) == len(path) else None


def _interval(edge: Edge) -> Interval | None:
    if edge.ratio is None or edge.ratio_low is None or edge.ratio_high is None:
        return None
    return Interval(edge.ratio, edge.ratio_low, edge.ratio_high)
