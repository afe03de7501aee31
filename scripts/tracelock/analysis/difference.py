"""What changed between two traces: parts of the step, operators and kernels, ordered by their share of the difference.

Times are microseconds per step (of the whole recording where no steps are marked). A share is a row's change divided by
the change of the step: shares of the breakdown sum to 1, those of operators need not, because devices and threads work
at once. Rows are matched by name, then without what a build puts into names, then by what they do (`identities`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from tracelock.analysis.identities import role, without_build
from tracelock.analysis.model import Analysis, Breakdown

SAME, BUILD, ROLE, ONE_SIDE = "same name", "same but for the build", "does the same", "on one side alone"


@dataclass(frozen=True)
class Change:
    """A row of either trace. A side that does not have it is None; `share` is None where the step did not change."""

    name: str
    other_name: str | None  # in the second trace, where it has another name there
    matched: str
    before_us: float | None
    after_us: float | None
    before_calls: float | None
    after_calls: float | None
    share: float | None

    @property
    def change_us(self) -> float:
        """The second minus the first; what a side does not have counts as 0."""
        return (self.after_us or 0.0) - (self.before_us or 0.0)


@dataclass(frozen=True)
class TraceDifference:
    """Two traces beside each other."""

    unit: str  # "step" or "recording"
    before_us: float
    after_us: float
    before_steps: int
    after_steps: int
    operator_time: str  # "self device time" where both traces have it, else "self host time"
    parts: tuple[Change, ...]
    operators: tuple[Change, ...]
    kernels: tuple[Change, ...]

    @property
    def ratio(self) -> float | None:
        """The second step over the first."""
        return self.after_us / self.before_us if self.before_us else None


@dataclass(frozen=True)
class _Row:
    name: str
    time_us: float
    calls: float


def trace_difference(before: Analysis, after: Analysis) -> TraceDifference | None:
    """Return what changed from one analysis to another, None where one has no step and no recording to compare."""
    if before.step.mean_us is None or after.step.mean_us is None:
        return None
    change = after.step.mean_us - before.step.mean_us
    device = all(any(row.self_device_us for row in one.operators) for one in (before, after))

    def time(row: object) -> float:
        return float(getattr(row, "self_device_us" if device else "self_cpu_us") or 0.0)

    def operators(one: Analysis) -> list[_Row]:
        return [_row(row.name, time(row), row.calls, one) for row in one.operators]

    def kernels(one: Analysis) -> list[_Row]:
        return [_row(row.name, row.total_us, row.calls, one) for row in one.kernels]

    return TraceDifference(
        unit="step" if before.step.source == after.step.source == "ProfilerStep" else "recording",
        before_us=before.step.mean_us,
        after_us=after.step.mean_us,
        before_steps=before.step.count,
        after_steps=after.step.count,
        operator_time="self device time" if device else "self host time",
        parts=_parts(before.step.breakdown_us, after.step.breakdown_us, change),
        operators=_matched(operators(before), operators(after), change),
        kernels=_matched(kernels(before), kernels(after), change),
    )


def _row(name: str, time_us: float, calls: float, one: Analysis) -> _Row:
    steps = max(one.step.count, 1)
    return _Row(name, time_us / steps, calls / steps)


def _parts(before: Breakdown | None, after: Breakdown | None, change: float) -> tuple[Change, ...]:
    if before is None or after is None:
        return ()
    pairs = [(part.name, getattr(before, part.name), getattr(after, part.name)) for part in fields(Breakdown)]
    return _ordered(
        Change(name, None, SAME, one, other, None, None, _share(other - one, change))
        for name, one, other in pairs
        if one or other
    )


def _matched(before: list[_Row], after: list[_Row], change: float) -> tuple[Change, ...]:
    """Return the rows of both sides, each once: matched by name, else without the build, else by role."""
    found: list[Change] = []
    steps: tuple[tuple[str, Callable[[str], str | None]], ...] = (
        (SAME, str),
        (BUILD, without_build),
        (ROLE, role),
    )
    for how, key in steps:
        one, other = _grouped(before, key), _grouped(after, key)
        both = [name for name in one if name in other]
        found += [_pair(one[name], other[name], how, change) for name in both]
        before = [row for row in before if key(row.name) not in both]
        after = [row for row in after if key(row.name) not in both]
    found += [
        Change(row.name, None, ONE_SIDE, row.time_us, None, row.calls, None, _share(-row.time_us, change))
        for row in before
    ]
    found += [
        Change(row.name, None, ONE_SIDE, None, row.time_us, None, row.calls, _share(row.time_us, change))
        for row in after
    ]
    return _ordered(found)


def _grouped(rows: list[_Row], key: Callable[[str], str | None]) -> dict[str, list[_Row]]:
    groups: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        if (name := key(row.name)) is not None:
            groups[name].append(row)
    return groups


def _pair(before: list[_Row], after: list[_Row], how: str, change: float) -> Change:
    one, other = (sum(row.time_us for row in rows) for rows in (before, after))
    name, other_name = (_name(rows) for rows in (before, after))
    return Change(
        name,
        None if other_name == name else other_name,
        how,
        one,
        other,
        sum(row.calls for row in before),
        sum(row.calls for row in after),
        _share(other - one, change),
    )


def _name(rows: list[_Row]) -> str:
    """Return the name of the largest of several rows, and how many more there are."""
    largest = max(rows, key=lambda row: row.time_us)
    return largest.name if len(rows) == 1 else f"{largest.name} and {len(rows) - 1} more"


def _share(part: float, change: float) -> float | None:
    return part / change if change else None


def _ordered(rows: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(sorted(rows, key=lambda row: (-abs(row.change_us), row.name)))
