"""What a diagnosis says: findings with their evidence, and the remedies that should remove their cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.model import Analysis

Severity: TypeAlias = Literal["info", "warning", "critical"]


@dataclass(frozen=True)
class Evidence:
    """One measured fact that a finding rests on."""

    text: str  # "DataLoader: 59,262 of 177,592 µs a step"
    value: float | None = None
    unit: str = ""
    threshold: float | None = None
    rows: tuple[TraceRow, ...] = ()  # of the trace, with their times and, where stacks were recorded, the user's line


@dataclass(frozen=True)
class Remedy:
    """A change that should remove the cause.

    `settings` are settings of the study's workload that a further variant can carry (empty for advice that needs
    code); `expect` says what should happen to which figure.
    """

    settings: dict[str, Any]
    expect: str
    code: str = ""  # advice for the user's code, never claimed as tested


@dataclass(frozen=True)
class Finding:
    """A cause of lost time."""

    code: str  # stable, kebab-case: "dataloader-bound"
    title: str
    severity: Severity
    share_of_step: float | None  # part of the step that the cause occupies, 0..1
    gain_at_most: float | None  # part of the step that removing it can save at most, 0..1
    # What removing it is expected to save beyond the findings before it, 0..1; null where that cannot be told.
    gain_estimate: float | None = field(default=None, kw_only=True)
    confidence: Literal["low", "medium", "high"]
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True)
class NotExamined:
    """A cause that could not be looked for."""

    code: str
    why: str  # "no run.json beside the trace"


@dataclass(frozen=True)
class Diagnosed(Analysis):
    """The whole document ``tracelock/analysis/1``: an analysis and its findings, the main cause first."""

    findings: tuple[Finding, ...] = ()
    verdict: str = ""  # one sentence for a person
    settings: dict[str, Any] = field(default_factory=dict)  # settings in force, where they are known
    ruled_out: tuple[str, ...] = ()  # codes of causes that were looked for and not found
    not_examined: tuple[NotExamined, ...] = ()
