"""The device communicates and does not compute."""

from __future__ import annotations

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where exposed communication could gain ``exposed_communication_share``."""
    exposed = exposed_us(case)
    removal = Removal(device=exposed) if case.has_gpu else Removal(host=exposed)
    gain = case.gain(removal)
    if gain < case.limits.exposed_communication_share:
        return None
    return Cause(
        title=f"Communication is not hidden behind computation: {percent(gain)} of the step",
        removal=removal,
        share=case.share(exposed),
        evidence=(of_step(case, "collectives while nothing computes", exposed), *_collectives(case)),
        remedies=tuple(_remedies(case)),
    )


def exposed_us(case: Case) -> float:
    """Return the time a step in which a device communicates and does not compute, of the device that does so most.

    Where the trace holds no device, it is the host's time in calls of collectives.
    """
    parts = case.analysis.step.breakdown_us
    if not case.has_gpu:
        return parts.communication if parts else 0.0
    exposed = max((gpu.exposed_communication_us for gpu in case.analysis.gpus), default=0.0)
    return exposed / max(1, case.analysis.step.count)


def _collectives(case: Case) -> list[Evidence]:
    found = []
    for device in case.analysis.collectives:
        for each in sorted(device.items, key=lambda each: -each.total_us)[:3]:
            speed = "" if each.bus_bandwidth is None else f", {each.bus_bandwidth / 1e9:,.1f} GB/s on the bus"
            text = (
                f"{each.name}: {each.calls} calls, {each.total_us:,.0f} µs (shortest {each.min_us:,.0f}, "
                f"longest {each.max_us:,.0f}){speed}"
            )
            found.append(Evidence(text, each.total_us, "µs"))
    return found


def _remedies(case: Case) -> list[Remedy]:
    remedies = []
    batch = case.setting("batch_size")
    if isinstance(batch, int):
        remedies.append(Remedy({"batch_size": 2 * batch}, "as many gradients for twice the samples"))
    if case.setting("amp") in (None, "off"):
        remedies.append(
            Remedy(
                {},
                "half the bytes",
                "reduce gradients in half precision: ddp.register_comm_hook(…, bf16_compress_hook)",
            )
        )
    advice = (
        "let gradients be reduced while the backward pass runs (DistributedDataParallel with its default buckets, "
        "static_graph=True; no barrier and no all-reduce of your own after it); accumulate gradients over "
        "several batches under no_sync()"
    )
    return [*remedies, Remedy({}, "collectives run beside the backward pass", advice)]


RULE = Rule(
    code="communication-exposed",
    needs="kernels of collectives (NCCL, RCCL) in the trace; where it holds no device, calls of collectives",
    speaks="collectives run while no other kernel does, for `exposed_communication_share` of the step or more",
    remedies="twice the `batch_size`; code: buckets that overlap the backward pass, compressed gradients",
    thresholds=("exposed_communication_share",),
    examine=examine,
)
