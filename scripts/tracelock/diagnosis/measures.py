"""What all rules share: how sure a finding is, how grave, and how figures are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tracelock.analysis.costs import TraceRow
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.model import Evidence, Severity
from tracelock.diagnosis.trust import is_doubtful

UNSEEN = 0.005  # a removal that saves less is not worth a line


def severity(case: Case, gain: float | None) -> Severity:
    """Return how grave a cause is that can give back `gain` of the step at most."""
    return "critical" if gain is not None and gain >= case.limits.critical_gain else "warning"


def confidence(case: Case) -> Literal["low", "medium", "high"]:
    """Return how far the trace can be trusted: complete and with enough steps is high."""
    if is_doubtful(case) or case.analysis.trace.quality != "complete" or not case.has_steps:
        return "low"
    return "high" if case.steps >= case.limits.confident_steps else "medium"


def percent(share: float) -> str:
    """Return a share as a person reads it: ``33.4 %``."""
    return f"{100 * share:.1f} %"


def per_step(time_us: float | None) -> str:
    """Return a time as a person reads it: ``59,262 µs``."""
    return "unknown" if time_us is None else f"{time_us:,.0f} µs"


def each(case: Case) -> str:
    """Return what times of the mean step are times of: a trace that marks no steps is one alone."""
    return "a step" if case.has_steps else "in the trace"


def of_step(case: Case, what: str, time_us: float, rows: tuple[TraceRow, ...] = ()) -> Evidence:
    """Return the evidence that something takes `time_us` of the mean step."""
    text = f"{what}: {per_step(time_us)} of {per_step(case.step_us)} {each(case)}"
    return Evidence(text, case.share(time_us), "share of step", rows=rows)


def lines(rows: Iterable[TraceRow]) -> str:
    """Return the user's lines around rows, each once, for advice on code; empty where no stacks were recorded."""
    found = dict.fromkeys(row.code for row in rows if row.code)
    return ", ".join(found)


def at(rows: Iterable[TraceRow]) -> str:
    """Return `` at <lines>`` for advice on code, or an empty string."""
    found = lines(rows)
    return f" at {found}" if found else ""


def host_causes_us(case: Case) -> float:
    """Return the host's time in a step that has causes of its own: loading, long pauses, the driver's allocator."""
    costs = case.costs
    if costs is None:
        return 0.0
    allocator = sum(wait.host_us - wait.waiting_us for wait in costs.waits if wait.kind == "allocation")
    return costs.loading_us + sum(pause.host_us for pause in costs.pauses) + allocator


def chains(case: Case) -> Evidence:
    """Return what both sides of the step work, and what the device idles."""
    bounds = case.bounds
    device = "no device" if bounds.device_us is None else f"the device {per_step(bounds.device_us)}"
    text = f"of {per_step(bounds.step_us)} {each(case)} the host works {per_step(bounds.host_us)}, {device}"
    idle = bounds.idle_us / bounds.step_us if bounds.device_us is not None and bounds.step_us else None
    return Evidence(text, idle, "idle share")
