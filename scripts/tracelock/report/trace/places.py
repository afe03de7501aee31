"""From a finding to the places of the trace that prove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracelock.analysis.idle import CAUSES
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.parts import IDLE_LABELS
from tracelock.analysis.prepared import Prepared
from tracelock.diagnosis import Finding
from tracelock.report.trace.lanes import Lane
from tracelock.report.trace.words import clipped

# What keeps a device waiting where a finding of this code is right.
_CAUSES = {
    "dataloader-bound": "dataloader",
    "slow-collate": "dataloader",
    "worker-startup": "dataloader",
    "synchronization": "synchronization",
    "blocking-copies": "synchronization",
    "launch-bound": "host",
    "step-gaps": "host",
    "communication-exposed": "communication",
    "slow-device": "communication",
    "straggling-rank": "communication",
}


@dataclass(frozen=True)
class Place:
    """A moment of the timeline, and what to choose there; `at_us` is None where the longest row of a name is meant."""

    label: str
    at_us: float | None
    for_us: float
    row: str | None


def evidence_places(finding: Finding) -> list[list[Place]]:
    """Return the rows that each piece of evidence names."""
    return [
        [
            Place(
                label=clipped(row.code or row.inside or row.name),
                at_us=row.start_us if row.start_us > 0 else None,  # without a time of its own: a kind of call
                for_us=row.duration_us,
                row=clipped(row.name),
            )
            for row in each.rows
        ]
        for each in finding.evidence
    ]


def place_of(finding: Finding, known: Prepared, lanes: Sequence[Lane]) -> Place | None:
    """Return the clearest example of a cause that names no row: its longest gap of a device, or wait for data."""
    cause = _CAUSES.get(finding.code)
    if cause is None:
        return None
    longest = _longest_gap(lanes, CAUSES.index(cause))
    if longest is not None:
        return Place(f"longest gap: {IDLE_LABELS[cause]}", *longest, None)
    return _longest_wait(known) if cause == "dataloader" else None


def _longest_gap(lanes: Sequence[Lane], cause: int) -> tuple[float, float] | None:
    found: tuple[float, float] | None = None
    for lane in lanes:
        mine = np.flatnonzero(lane.text == cause) if lane.kind == "idle" else np.empty(0, np.intp)
        if len(mine):
            at = mine[np.argmax(lane.duration[mine])]
            gap = int(lane.start[at]) / 1000, int(lane.duration[at]) / 1000
            found = gap if found is None or gap[1] > found[1] else found
    return found


def _longest_wait(known: Prepared) -> Place | None:
    host = known.trace.host
    rows = np.flatnonzero(matching(known.trace.texts, host.name, is_loading) & known.host)
    if not len(rows):
        return None
    row = int(rows[np.argmax(host.duration[rows])])
    name = clipped(known.trace.texts[int(host.name[row])])
    return Place(
        "longest wait for data", (int(host.start[row]) - known.origin) / 1000, int(host.duration[row]) / 1000, name
    )
