"""Analyses made by hand, for tests of rules: a healthy one, changed where a test needs it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracelock.analysis.costs import Bounds, Costs
from tracelock.analysis.model import Analysis, Breakdown, Gpu, IdleCauses, Operator, Step, StepSummary, TraceSection

PARTS = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_op", "other")


def breakdown(**parts: float) -> Breakdown:
    """Return a breakdown with the parts given, the others 0."""
    return Breakdown(**{name: parts.get(name, 0.0) for name in PARTS})


def operator(name: str, calls: int, total_us: float, **rest: Any) -> Operator:
    """Return an operator whose time is all its own."""
    known: dict[str, Any] = {"self_cpu_us": total_us, "self_device_us": None, "total_device_us": None}
    return Operator(name=name, calls=calls, total_cpu_us=total_us, **{**known, **rest})


def gpu(busy_us: float, span_us: float, **idle: float) -> Gpu:
    """Return a GPU that computes `busy_us` of `span_us`; the rest of the idle time is unattributed."""
    causes = {
        name: idle.get(name, 0.0) for name in ("dataloader", "host", "synchronization", "launch", "communication")
    }
    rest = span_us - busy_us - sum(causes.values())
    return Gpu(
        id=0,
        span_us=span_us,
        busy_us=busy_us,
        idle_us=span_us - busy_us,
        compute_us=busy_us,
        communication_us=0.0,
        memory_us=0.0,
        exposed_communication_us=0.0,
        utilization=busy_us / span_us,
        sm_efficiency=None,
        occupancy_pct=None,
        idle_causes_us=IdleCauses(**causes, unattributed=rest),
    )


def costs(step_us: float, **known: Any) -> Costs:
    """Return the costs of steps of `step_us`: no waits, no copies, the host at work all the time, unless given."""
    device, waiting = known.pop("device_us", None), known.pop("waiting_us", 0.0)
    bounds = Bounds(step_us, device, known.pop("host_us", step_us - waiting), waiting)
    empty: dict[str, Any] = {"loading_us": 0.0, "operators_us": 0.0, "waits": (), "copies": (), "repetitions": ()}
    return Costs(**{**empty, "bounds": bounds, "pauses": (), "excess": None, "optimizer": None, **known})


def analysis(parts: Breakdown, steps: int = 4, quality: str = "complete", **changes: Any) -> Analysis:
    """Return an analysis of `steps` equal steps, each divided into `parts`."""
    length = sum(getattr(parts, name) for name in PARTS)
    rows = tuple(Step(f"ProfilerStep#{number}", number * length, length, parts) for number in range(steps))
    summary = StepSummary(steps, length, length, parts, parts.dataloader / length, "ProfilerStep")
    section = TraceSection("made.json", 1, 0, quality, (), "2.13.0", None, None, ())
    made = Analysis(section, rows, summary, (), (), (), (), ())
    device = parts.kernel + parts.memcpy + parts.memset + parts.communication
    usual = costs(length, loading_us=parts.dataloader, device_us=device or None)
    return replace(made, **{"costs": usual, **changes})
