"""Batches are copied quickly and without waiting, and still no kernel runs beside them."""

from __future__ import annotations

from tracelock.diagnosis import copies
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where hiding these copies behind kernels could gain ``min_gain``."""
    found = copies.to_device(case, lambda each: not each.waits and not copies.is_pageable(case, each))
    removal = Removal(device=sum(each.exposed_us for each in found))
    gain = case.gain(removal)
    if gain < case.limits.min_gain:
        return None
    advice = "copy the next batch on a stream of its own while this one is trained on (a prefetching loader)"
    return Cause(
        title=f"Copies of batches are not hidden behind kernels: {percent(gain)} of the step",
        removal=removal,
        share=case.share(removal.device),
        evidence=tuple(copies.evidence(case, found)),
        remedies=(
            Remedy({}, "copies run beside kernels", f"{advice}{at(row for each in found for row in each.rows)}"),
            Remedy({}, "fewer bytes are copied", "send bytes (uint8) and convert to floats on the device"),
        ),
    )


RULE = Rule(
    code="copies-not-overlapped",
    needs="copies from host to device in the trace",
    speaks="copies from pinned memory that the host does not wait for run while no kernel does, and without that time "
    "the step gains `min_gain`",
    remedies="code: copy the next batch on a stream of its own; send bytes, convert on the device",
    thresholds=("min_gain",),
    examine=examine,
    stacks=True,
)
