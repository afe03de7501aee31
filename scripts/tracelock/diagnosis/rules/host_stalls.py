"""The host is stuck now and then, in calls that otherwise take no time, and the device runs dry."""

from __future__ import annotations

import re

from tracelock.analysis.costs import Hitch
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

_ALLOCATES = re.compile(r"^aten::(empty|zeros|ones|full|new_|resize)|Malloc|Free|HostAlloc")
_EVENT = re.compile(r"Event(Record|Query|Create|Destroy)")
MEMORY = (
    "allocations that are stuck hand pages out one by one: reuse buffers, look at swap and at transparent huge pages"
)
EVENT = "an event that is stuck waits for the driver's lock: see which other thread or process uses the device"
OTHERS = (
    "a call that is stuck at no fixed place waits for a core, a lock or a page: look for other processes on the "
    "machine, fewer threads than cores, pinned cores (taskset), swap"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where calls far longer than usual, in more than one step, could gain ``min_gain``."""
    found = list(case.costs.hitches) if case.costs and case.has_gpu and case.has_steps else []
    recurring = [each for each in found if each.steps > 1 or case.steps < case.limits.confident_steps]
    # What comes at random comes so many times more or less in other steps: the root of its count.
    removal = Removal(host=sum(each.host_us * (1 + _calls(case, each) ** -0.5) for each in recurring))
    gain = case.gain(removal)
    if gain < case.limits.min_gain:
        return None
    names = ", ".join(each.name for each in recurring[:3])
    return Cause(
        title=f"The host is stuck in calls that are short as a rule ({names}): up to {percent(gain)} of the step",
        removal=removal,
        likely=Removal(host=sum(each.host_us for each in recurring)),
        share=case.share(sum(each.host_us for each in recurring)),
        evidence=tuple(_shown(case, each) for each in recurring[:4]),
        remedies=tuple(_remedies(recurring)),
    )


def _calls(case: Case, hitch: Hitch) -> float:
    return max(1.0, hitch.calls_per_step * case.steps)


def _shown(case: Case, hitch: Hitch) -> Evidence:
    what = (
        f"{hitch.name}: {hitch.calls_per_step:,.1f} calls beyond the usual {hitch.usual_us:,.1f} µs, in {hitch.steps} "
        f"of {case.steps} steps"
    )
    return of_step(case, what, hitch.host_us, hitch.rows)


def _remedies(found: list[Hitch]) -> list[Remedy]:
    advice: dict[str, Hitch] = {}
    for each in found:
        kind = MEMORY if _ALLOCATES.search(each.name) else EVENT if _EVENT.search(each.name) else OTHERS
        advice.setdefault(kind, each)
    expect = "these calls take as long as they do as a rule"
    return [Remedy({}, expect, f"{each.name}{at(each.rows)}: {kind}") for kind, each in advice.items()]


RULE = Rule(
    code="host-stalls",
    needs="work of a device, and steps, in the trace",
    speaks="calls of the host that wait for no device take a millisecond and twenty times what they take as a rule, in "
    "more than one step (of `confident_steps` and more), and without that the step gains `min_gain`",
    remedies="code: by the calls that are stuck: buffers, other processes, threads, swap",
    thresholds=("min_gain", "confident_steps"),
    examine=examine,
    stacks=True,
)
