"""What all rules share: how sure a finding is, how grave, and how figures are written."""

from __future__ import annotations

from typing import Literal

from tracelock.diagnosis.case import Case
from tracelock.diagnosis.model import Severity


def severity(case: Case, gain: float | None) -> Severity:
    """Return how grave a cause is that can give back `gain` of the step at most."""
    return "critical" if gain is not None and gain >= case.limits.critical_gain else "warning"


def confidence(case: Case) -> Literal["low", "medium", "high"]:
    """Return how far the trace can be trusted: complete and with enough steps is high."""
    if case.analysis.trace.quality != "complete" or not case.has_steps:
        return "low"
    return "high" if case.steps >= case.limits.confident_steps else "medium"


def percent(share: float) -> str:
    """Return a share as a person reads it: ``33.4 %``."""
    return f"{100 * share:.1f} %"


def per_step(time_us: float | None) -> str:
    """Return a time as a person reads it: ``59,262 µs``."""
    return "unknown" if time_us is None else f"{time_us:,.0f} µs"
