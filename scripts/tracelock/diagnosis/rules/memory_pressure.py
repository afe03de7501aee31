"""The caching allocator asks the driver again and again: the device's memory is full, or in pieces."""

from __future__ import annotations

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where calls of the driver's allocator could gain ``min_gain``."""
    waits = [each for each in case.costs.waits if each.kind == "allocation"] if case.costs else []
    removal = Removal(
        host=sum(each.host_us - each.waiting_us for each in waits), waiting=sum(each.waiting_us for each in waits)
    )
    gain = case.gain(removal)
    calls = sum(each.calls_per_step for each in waits)
    if gain < case.limits.min_gain or calls < 1 or not case.has_steps:
        return None
    return Cause(
        title=f"The allocator asks the driver {calls:,.0f} times a step: up to {percent(gain)} of the step",
        removal=removal,
        share=case.share(removal.host + removal.waiting),
        evidence=(
            *(
                of_step(case, f"{each.name}: {each.calls_per_step:,.1f} calls", each.host_us, each.rows)
                for each in waits[:3]
            ),
            *_levels(case),
        ),
        remedies=tuple(_remedies(case, at(row for each in waits for row in each.rows))),
    )


def _levels(case: Case) -> list[Evidence]:
    found = []
    for memory in case.analysis.memory:
        if memory.capacity_bytes and memory.peak_reserved_bytes:
            share = memory.peak_reserved_bytes / memory.capacity_bytes
            found.append(Evidence(f"{memory.device}: {percent(share)} of its memory is reserved", share, "share"))
    return found


def _remedies(case: Case, where: str) -> list[Remedy]:
    remedies = []
    batch = case.setting("batch_size")
    if isinstance(batch, int) and batch > 1:
        remedies.append(
            Remedy({"batch_size": batch // 2}, "activations fit; blocks are used again instead of returned")
        )
    if case.has_gpu and case.setting("amp") in (None, "off"):
        remedies.append(Remedy({"amp": "bf16"}, "activations take half the memory"))
    advice = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; checkpoint activations; batches of equal size"
    return [*remedies, Remedy({}, "blocks are used again instead of returned", f"{advice}{where}")]


RULE = Rule(
    code="memory-pressure",
    needs="calls of the device's runtime, and steps, in the trace: memory is asked for at every start",
    speaks="one call or more a step of the driver's allocator (`cudaMalloc`, `cudaFree`), and without them the "
    "step gains `min_gain`",
    remedies="half the `batch_size`, `amp: bf16`; code: expandable segments, checkpointing",
    thresholds=("min_gain",),
    examine=examine,
)
