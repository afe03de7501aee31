"""The memory of a trace as a page shows it: the curve, who allocated, what lived at the peak, growth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracelock.analysis.at_peak import Peak
from tracelock.analysis.sections import Memory
from tracelock.diagnosis import Diagnosed
from tracelock.report.trace.tables import Column, Table
from tracelock.report.trace.words import clipped

_OWNERS: tuple[Column, ...] = (
    ("operator", "code"), ("on behalf of", "code"), ("allocations", "count"), ("allocated", "bytes"),
    ("kept after the steps", "bytes"), ("kept from steps", "count"),
)  # fmt: skip
_LIVING: tuple[Column, ...] = (
    ("part of the step", "text"),
    ("operator", "code"),
    ("allocations", "count"),
    ("bytes", "bytes"),
)
NONE = "The trace has no memory records (profile_memory=True records them)."


def memories(found: Diagnosed, peaks: Sequence[Peak]) -> list[dict[str, Any]]:
    """Return a description of each device that has memory records."""
    by_device = {peak.device: peak for peak in peaks}
    return [_memory(found, number, each, by_device.get(each.device)) for number, each in enumerate(found.memory)]


def _memory(found: Diagnosed, number: int, each: Memory, peak: Peak | None) -> dict[str, Any]:
    prefix = f"memory[{number}]."
    why = {key.removeprefix(prefix): why for key, why in found.unknown.items() if key.startswith(prefix)}
    notes = [f"{', '.join(key for key in why if why[key] == one)}: {one}" for one in dict.fromkeys(why.values())]
    return {
        "device": clipped(each.device),
        "curve": [[round(point.time_us, 3), point.allocated_bytes, point.reserved_bytes] for point in each.curve],
        "peak": each.peak_allocated_bytes,
        "reserved": each.peak_reserved_bytes,
        "capacity": each.capacity_bytes,
        "growth": each.growth_bytes_per_step,
        "growth_interval": each.growth_interval,
        "at": None if peak is None else round(peak.time_us, 3),
        "before": None if peak is None else peak.before_bytes,
        "phases": _phases(peak),
        "notes": notes,
        "owners": _owners(each).document(),
        "living": _living(peak).document(),
    }


def _phases(peak: Peak | None) -> list[list[Any]]:
    """Return bytes that lived at the peak by the part of the step that allocated them, largest first."""
    sums: dict[str, int] = {}
    for each in peak.living if peak else ():
        sums[each.phase] = sums.get(each.phase, 0) + each.bytes
    return [[phase, size] for phase, size in sorted(sums.items(), key=lambda item: -item[1])]


def _owners(each: Memory) -> Table:
    rows = [
        (owner.name or "(outside of operators)", owner.caller, owner.allocations, owner.allocated_bytes,
         owner.kept_bytes, owner.kept_steps)
        for owner in each.owners
    ]  # fmt: skip
    return Table("allocations", _OWNERS, rows[:1000], left_out=max(0, len(rows) - 1000))


def _living(peak: Peak | None) -> Table:
    if peak is None:
        return Table("lived at the peak", _LIVING, (), "The records carry no totals, so that no peak is known.")
    rows = [(one.phase, one.name or "(outside of operators)", one.allocations, one.bytes) for one in peak.living]
    return Table("lived at the peak", _LIVING, rows, peak.why_not or "")
