"""What a study came to: the document ``tracelock/comparison/1``, the contract between comparison and report.

Times are microseconds, memory is bytes, shares and ratios are fractions. A figure that cannot be known is None.
A case is a variant in one environment. The columns of the tables are documented in docs/tables.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from tracelock.analysis.model import Breakdown, IdleCauses
from tracelock.errors import Problem, TracelockError
from tracelock.io import read_json, schema, write_json
from tracelock.study.outcome import Environment, ExcludedRun, MissingRun, RunRow
from tracelock.study.records import PeakMemory, RemedyPath
from tracelock.study.stats import Interval
from tracelock.study.verdicts import Difference, Verdict

KIND = "comparison"
DISTURBED = 1.5  # times the median of its variant: far outside what equal runs of a quiet machine differ by

Metric: TypeAlias = Literal["time per sample", "step time"]


@dataclass(frozen=True)
class RemedyRow:
    """A remedy of a finding; where a variant of the study applies it, what that brought against the finding's case."""

    settings: dict[str, Any]
    expect: str
    code: str
    tested_by: str | None = None
    difference: Difference | None = None


@dataclass(frozen=True)
class FindingRow:
    """A cause of lost time in one case. `runs` of `analysed` traces show it; figures are medians over them."""

    environment: str
    variant: str
    unlocked: bool | None
    rank: int
    code: str
    title: str
    severity: str
    confidence: str
    runs: int
    analysed: int
    share_of_step: float | None
    gain_at_most: float | None
    evidence: tuple[str, ...]
    remedies: tuple[RemedyRow, ...]
    placed: str | None = None  # what a further recording with Python stacks says of it, with the user's lines


@dataclass(frozen=True)
class DeviceUse:
    """How busy the accelerators were over the profiled steps, as shares of that time; means over devices and runs."""

    count: int
    utilization: float
    idle_causes: IdleCauses | None  # shares, not microseconds


@dataclass(frozen=True)
class MemoryCurve:
    """Allocated memory of one device over the profiled window of one run, thinned out; peaks are kept."""

    device: str
    repeat: int
    time_us: tuple[float, ...]
    allocated_bytes: tuple[int, ...]
    step_us: float | None  # mean profiled step of that run
    growth_bytes_per_step: float | None


@dataclass(frozen=True)
class Loading:
    """Shares of the time that the training loop waits for data."""

    timed: float | None  # median over runs, of the timed part: waiting in next(loader)
    low: float | None  # lowest and highest run
    high: float | None
    traced: float | None  # median over runs, of the profiled steps: exclusive, from the trace


@dataclass(frozen=True)
class Explained:
    """What the traces of a case say. Means over the runs that were analysed, medians where said."""

    analysed: int
    finding: str | None  # code of the finding that leads most often
    title: str | None
    finding_runs: int
    breakdown: Breakdown | None
    device: DeviceUse | None
    memory: tuple[MemoryCurve, ...]


@dataclass(frozen=True)
class Case:
    """A variant in one environment: medians over its runs, with intervals."""

    environment: str
    variant: str
    baseline: bool
    unlocked: bool | None
    settings: dict[str, Any]
    factors: dict[str, Any]  # the settings that vary in this study
    planned: int
    runs: int
    step: Interval | None
    median_step_us: float | None  # median over runs of each run's median step
    sample: Interval | None  # time per sample
    throughput: Interval | None  # samples a second: the reciprocal of `sample`
    loading: Loading
    profiled_step_us: float | None
    profiler_overhead: float | None
    peaks: PeakMemory  # highest over the runs
    explained: Explained

    @property
    def key(self) -> tuple[str, str]:
        """What names a case: its environment and its variant."""
        return self.environment, self.variant


@dataclass(frozen=True)
class ComparisonRow:
    """A case against its reference: the baseline of the same environment, or the same variant elsewhere."""

    environment: str
    variant: str
    unlocked: bool | None  # either side
    reference_environment: str
    reference_variant: str
    metric: Metric
    runs: int
    reference_runs: int
    difference: Difference
    step_ratio: float  # of the median step times, whatever a step holds
    changed: dict[str, tuple[Any, Any]]

    @property
    def verdict(self) -> Verdict | None:
        """faster, slower, no difference, unclear; None where one run does not allow any."""
        return self.difference.verdict

    @property
    def key(self) -> tuple[str, str]:
        """The case that is compared."""
        return self.environment, self.variant

    @property
    def within(self) -> bool:
        """Whether both sides are of one environment: a comparison with the baseline."""
        return self.environment == self.reference_environment


@dataclass(frozen=True)
class OperatorRow:
    """An operator in one case: medians over its runs, per step."""

    environment: str
    variant: str
    unlocked: bool | None
    name: str
    runs: int
    calls_per_step: float | None
    self_cpu_us: float
    total_cpu_us: float
    self_device_us: float | None
    total_device_us: float | None


@dataclass(frozen=True)
class KernelRow:
    """A kernel in one case: medians over the runs whose traces hold it, per step."""

    environment: str
    variant: str
    name: str
    identity: str  # the name without what a version or a build puts into it
    runs: int
    calls_per_step: float
    time_us: float
    tensor_cores: bool | None


RowT = TypeVar("RowT", OperatorRow, KernelRow, FindingRow)


def _by_case(rows: Iterable[RowT]) -> dict[tuple[str, str], list[RowT]]:
    """Return the rows of each case, in their order: a page of many variants asks for all of them."""
    found: dict[tuple[str, str], list[RowT]] = {}
    for row in rows:
        found.setdefault((row.environment, row.variant), []).append(row)
    return found


@dataclass(frozen=True)
class Answer:
    """The study's answer for one environment: what is slow, what to change, what it brings."""

    environment: str
    case: Case
    finding: FindingRow | None
    best: ComparisonRow | None  # the fastest variant that is clearly faster than the baseline


@dataclass(frozen=True)
class Method:
    """How figures were made, in words."""

    interval: str
    few_runs: str
    verdict: str
    confidence: float
    resamples: int
    seed: int
    min_effect: float


@dataclass(frozen=True)
class Comparison:
    """The whole document."""

    experiment: str
    description: str
    digest: str
    study_file: str
    workload: str
    baseline: str
    repeats: int
    factors: tuple[str, ...]
    protocol: dict[str, Any]
    method: Method
    environments: tuple[Environment, ...]
    answers: tuple[Answer, ...]
    cases: tuple[Case, ...]
    comparisons: tuple[ComparisonRow, ...]
    runs: tuple[RunRow, ...]
    missing: tuple[MissingRun, ...]
    excluded: tuple[ExcludedRun, ...]
    findings: tuple[FindingRow, ...]
    operators: tuple[OperatorRow, ...]
    remedies: RemedyPath | None
    unknown: dict[str, str]
    kernels: tuple[KernelRow, ...] = ()  # absent in documents of earlier versions

    def against_baseline(self, case: Case) -> ComparisonRow | None:
        """Return the comparison of `case` with the baseline of its environment; None for the baseline itself."""
        return self._against_by_case.get(case.key)

    def operators_of(self, case: Case) -> list[OperatorRow]:
        """Return the operators of a case, those with most time of their own first."""
        return self._operators_by_case.get(case.key, [])

    def kernels_of(self, case: Case) -> list[KernelRow]:
        """Return the kernels of a case, those with most time first."""
        return self._kernels_by_case.get(case.key, [])

    @cached_property
    def _operators_by_case(self) -> dict[tuple[str, str], list[OperatorRow]]:
        return _by_case(self.operators)

    @cached_property
    def _kernels_by_case(self) -> dict[tuple[str, str], list[KernelRow]]:
        return _by_case(self.kernels)

    def disturbed(self) -> list[RunRow]:
        """Return the runs that did not have the machine to themselves, by its samples or by how long they took."""
        return [run for run in self.runs if run.disturbed or self.took_long(run)]

    def took_long(self, run: RunRow) -> bool:
        """Return whether a run took much longer than the two others or more of its case."""
        return self._runs_of_case[run.environment, run.variant] > 2 and (run.relative or 0.0) > DISTURBED

    def disturbance(self, run: RunRow) -> str:
        """Return what is known of what disturbed a run."""
        long = f"took {run.relative or 0:.1f} times the median of its variant" if self.took_long(run) else ""
        return "; ".join(part for part in (run.disturbed, long) if part)

    def findings_of(self, case: Case) -> list[FindingRow]:
        """Return the findings of a case, the main one first."""
        return self._findings_by_case.get(case.key, [])

    @cached_property
    def _against_by_case(self) -> dict[tuple[str, str], ComparisonRow]:
        return {row.key: row for row in reversed(self.comparisons) if row.within}

    @cached_property
    def _findings_by_case(self) -> dict[tuple[str, str], list[FindingRow]]:
        return _by_case(self.findings)

    @cached_property
    def _runs_of_case(self) -> dict[tuple[str, str], int]:
        return {case.key: case.runs for case in self.cases}


def write(path: Path, comparison: Comparison) -> None:
    """Write the document to `path`, atomically and with stable bytes."""
    write_json(path, {"schema": schema(KIND), **msgspec.to_builtins(comparison)})


def read(path: Path) -> Comparison:
    """Read the document at `path`.

    Raises
    ------
    TracelockError
        If it cannot be read or is not sound.
    """
    document = read_json(path, KIND)
    try:
        return msgspec.convert(document, Comparison)
    except msgspec.ValidationError as error:
        what = str(error).replace("`$.", "`").replace(" - at ", " at ")
        raise TracelockError(Problem(str(path), what, "make it again: scripts/compare.py --results DIR")) from None
