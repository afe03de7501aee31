"""Where in the user's code an operator is called, as far as stacks were recorded."""

from __future__ import annotations

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.places import is_users
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.diagnosis.rule import all_rules

IN_LOADER = ("dataloader-bound", "slow-collate")


def rows_of(case: Case, operator: str) -> tuple[TraceRow, ...]:
    """Return the places that call `operator`, the most expensive first, each as a row without a time of its own."""
    groups = [group for group in case.analysis.operators_by_stack if group.name == operator and group.stack]
    groups.sort(key=lambda group: -(group.total_device_us or group.total_cpu_us))
    frames = [next((frame for frame in (group.stack or "").split("\n") if is_users(frame)), None) for group in groups]
    return tuple(
        TraceRow(operator, 0.0, group.total_cpu_us, None, frame)
        for group, frame in zip(groups[:3], frames, strict=False)
    )


def lines_of(finding: Finding) -> tuple[str, ...]:
    """Return the user's lines that a finding's evidence names, each once."""
    return tuple(dict.fromkeys(row.code for fact in finding.evidence for row in fact.rows if row.code))


def stacks_could_place(found: Diagnosed) -> bool:
    """Return whether a recording with Python stacks could name the user's line of the main finding, which has none.

    Frames of worker processes are in no trace: what is slow in there has no line.
    """
    if not found.findings or found.operators_by_stack or lines_of(found.findings[0]):
        return False
    code = found.findings[0].code
    in_workers = code in IN_LOADER and found.loading is not None and found.loading.mode == "workers"
    return not in_workers and any(rule.stacks for rule in all_rules() if rule.code == code)
