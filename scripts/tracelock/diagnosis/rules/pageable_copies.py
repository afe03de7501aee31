"""Batches are copied to the device from pageable memory: slowly, and the host waits."""

from __future__ import annotations

from typing import Any

from tracelock.diagnosis import copies
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import at, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where removing these copies could gain ``min_gain``."""
    found = copies.to_device(case, lambda each: copies.is_pageable(case, each))
    removal = copies.removal(found)
    gain = case.gain(removal)
    if gain < case.limits.min_gain or not copies.shows(case, found):
        return None
    return Cause(
        title=f"Batches are copied from pageable memory: up to {percent(gain)} of the step",
        removal=removal,
        likely=copies.likely(case, found),
        share=case.share(sum(each.exposed_us for each in found)),
        evidence=tuple(copies.evidence(case, found)),
        remedies=_remedies(case, at(row for each in found for row in each.rows)),
    )


def _remedies(case: Case, where: str) -> tuple[Remedy, ...]:
    settings: dict[str, Any] = {}
    if case.setting("pin_memory") is not True:
        settings["pin_memory"] = True
    if case.setting("non_blocking") is not True:
        settings["non_blocking"] = True
    advice = (
        f"copy from pinned memory (`pin_memory=True`, a `pin_memory()` method of your batch class) with "
        f"non_blocking=True{where}"
    )
    in_settings = (Remedy(settings, "copies are two to four times as fast and the host goes on"),) if settings else ()
    return (*in_settings, Remedy({}, "copies are two to four times as fast and the host goes on", advice))


RULE = Rule(
    code="pageable-copies",
    needs="copies from host to device in the trace; where their names do not tell the memory, the setting `pin_memory`",
    speaks="without copies from pageable memory, and the host's waiting in them, the step gains `min_gain`, and "
    "`direct_gain` "
    "of it shows as copies that no kernel hides and gaps of the device right after them",
    remedies="`pin_memory` with `non_blocking`; code: the same for batches of classes of one's own",
    thresholds=("min_gain", "direct_gain"),
    examine=examine,
    stacks=True,
)
