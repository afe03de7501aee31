"""Batches lie in pinned memory, and the host still waits for each copy."""

from __future__ import annotations

from tracelock.diagnosis import copies
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where not waiting for these copies could gain ``min_gain``."""
    found = copies.to_device(case, lambda each: each.waits is True and not copies.is_pageable(case, each))
    # On a stream of their own the copies hide behind kernels as soon as the host goes on launching those.
    hidden = sum(each.exposed_us for each in found if each.beside_kernels)
    removal = Removal(device=hidden, waiting=sum(each.waiting_us for each in found))
    gain = case.gain(removal)
    if gain < case.limits.min_gain or not copies.shows(case, found):
        return None
    advice = f"copy with `.to(device, non_blocking=True)`{at(row for each in found for row in each.rows)}"
    expect = "the host launches the step's kernels while the batch is on its way"
    in_settings = (Remedy({"non_blocking": True}, expect),) if case.setting("non_blocking") is not True else ()
    return Cause(
        title=f"The host waits for copies that could run beside it: up to {percent(gain)} of the step",
        removal=removal,
        share=case.share(removal.waiting),
        evidence=tuple(copies.evidence(case, found)),
        remedies=(*in_settings, Remedy({}, expect, advice)),
    )


RULE = Rule(
    code="blocking-copies",
    needs="copies from host to device in the trace, linked to the calls that made them",
    speaks="the host stays in calls that copy from pinned memory until the copy is done, without that waiting the step "
    "gains `min_gain`, and `direct_gain` of it shows as copies that no kernel hides and gaps right after them",
    remedies="`non_blocking`; code: the same in the user's own copies",
    thresholds=("min_gain", "direct_gain"),
    examine=examine,
    stacks=True,
)
