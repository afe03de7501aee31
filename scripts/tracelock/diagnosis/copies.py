"""What the copies of batches to the device cost a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tracelock.analysis.costs import Copying
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step, per_step
from tracelock.diagnosis.model import Evidence


def to_device(case: Case, wanted: Callable[[Copying], bool]) -> list[Copying]:
    """Return the copies from host to device that the program asks for and that are `wanted`."""
    if case.costs is None or not case.has_steps:
        return []  # the first copies of a process initialise the device
    return [each for each in case.costs.copies if each.kind == "HtoD" and each.asked and wanted(each)]


def is_pageable(case: Case, copying: Copying) -> bool:
    """Return whether the copies read pageable memory; where names do not say, the setting does."""
    return copying.memory == "pageable" or (copying.memory is None and case.setting("pin_memory") is False)


def shows(case: Case, copies: Sequence[Copying]) -> bool:
    """Return whether enough of the cost shows directly: copies that nothing hides, and gaps right after them."""
    waits = [wait for wait in case.costs.waits if wait.kind == "copy"] if case.costs else []
    direct = sum(each.exposed_us for each in copies) + sum(wait.stall_us for wait in waits)
    return (case.share(direct) or 0.0) >= case.limits.direct_gain


def removal(copies: Sequence[Copying]) -> Removal:
    """Return what a step loses with these copies: their exposed time, and the host's time and waiting in them."""
    return Removal(
        device=sum(each.exposed_us for each in copies),
        host=sum(max(0.0, each.host_us - each.waiting_us) for each in copies),
        waiting=sum(each.waiting_us for each in copies),
    )


def likely(case: Case, copies: Sequence[Copying]) -> Removal:
    """Return what a step is expected to lose with these copies.

    Of the host's waiting in them only what the device idles right after: the rest is waited for elsewhere, as soon as
    the copies no longer do.
    """
    whole = removal(copies)
    waits = [wait for wait in case.costs.waits if wait.kind == "copy"] if case.costs else []
    if not any(wait.kind == "synchronization" and wait.waiting_us for wait in (case.costs.waits if case.costs else ())):
        return whole
    return replace(whole, waiting=min(whole.waiting, sum(wait.stall_us for wait in waits)))


def evidence(case: Case, copies: Sequence[Copying]) -> list[Evidence]:
    """Return what the copies cost either side."""
    found = []
    for each in copies:
        what = (
            f"{each.calls_per_step:,.1f} copies {each.kind} ({each.memory or 'memory not named'}), no kernel "
            f"beside them"
        )
        found.append(of_step(case, what, each.exposed_us, each.rows))
        found.append(
            Evidence(f"the host spends {per_step(each.host_us)} a step in these copies", each.host_us, "µs a step")
        )
    return found
