"""Where in the user's code an operator is called, as far as stacks were recorded."""

from __future__ import annotations

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.places import is_users
from tracelock.diagnosis.case import Case


def rows_of(case: Case, operator: str) -> tuple[TraceRow, ...]:
    """Return the places that call `operator`, the most expensive first, each as a row without a time of its own."""
    groups = [group for group in case.analysis.operators_by_stack if group.name == operator and group.stack]
    groups.sort(key=lambda group: -(group.total_device_us or group.total_cpu_us))
    frames = [next((frame for frame in (group.stack or "").split("\n") if is_users(frame)), None) for group in groups]
    return tuple(
        TraceRow(operator, 0.0, group.total_cpu_us, None, frame)
        for group, frame in zip(groups[:3], frames, strict=False)
    )
