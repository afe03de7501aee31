"""The host waits for the device in the middle of its work, and the device then waits for the host."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.analysis.costs import Waiting
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, chains, host_causes_us, lines, of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

ADVICE = {
    "aten::item": "keep the value on the device and read it every hundredth step (`loss.detach()`; log later)",
    "aten::is_nonzero": "an `if` on a tensor waits for it: decide on the host, or use torch.where",
    "aten::nonzero": "`nonzero` and boolean masks need their size on the host: use torch.where or a fixed size",
    "aten::index": "index with tensors that lie on the device, and with torch.where instead of boolean masks",
    "aten::to": "`.cpu()` and `.to('cpu')` wait: copy with non_blocking=True into pinned memory, and read it later",
    "cudaDeviceSynchronize": "remove torch.cuda.synchronize() from the loop; time it with CUDA events",
}
OTHERS = 10  # times the device's time in copies
USUAL = "keep what is read on the device until it is needed, and read it once for many steps"


def examine(case: Case) -> Cause | None:
    """Return the cause where not waiting could gain ``min_gain``: a stall, not merely a call."""
    waits = [each for each in case.costs.waits if _is_wait(case, each)] if case.costs else []
    removal = _worth(case, waits)
    gain = case.gain(removal)
    stalled = case.share(sum(max(each.stall_us, _idle_us(each)) for each in waits)) or 0.0
    if case.gain(removal) < case.limits.min_gain or stalled < case.limits.stall_share * gain:
        return None
    shown = _worst(waits)
    names = ", ".join(each.name for each in shown)
    return Cause(
        title=f"The host waits for the device ({names}), and the device for the host: up to {percent(gain)} of "
        f"the step",
        removal=removal,
        share=case.share(removal.waiting),
        evidence=(
            *(
                of_step(case, f"waiting in {each.name}, {each.calls_per_step:,.1f} times", each.waiting_us, each.rows)
                for each in shown
            ),
            of_step(case, "the device has nothing to do when these waits end", sum(each.stall_us for each in waits)),
            chains(case),
        ),
        remedies=tuple(_remedy(each) for each in shown),
    )


def _is_wait(case: Case, wait: Waiting) -> bool:
    """Return whether calls synchronise, or copy and wait for something else than their copies.

    Copying a batch from pageable memory takes the host two or three times as long as the device's row says; calls of
    ten times that wait for what was launched before, on this device or another.
    """
    copied = sum(each.device_us for each in case.costs.copies) if case.costs else 0.0
    idle = _idle_us(wait) > wait.waiting_us / 4
    return wait.kind == "synchronization" or (wait.kind == "copy" and idle and wait.host_us > OTHERS * copied)


def _idle_us(wait: Waiting) -> float:
    """Return how long a step the host is in the calls while the device does nothing."""
    return max(0.0, wait.host_us - wait.waiting_us)


def _worth(case: Case, waits: Sequence[Waiting]) -> Removal:
    """Return what a step loses without the waits, as far as they cost anything by themselves.

    A device that waits for the loader or a pause waits for those, even where the wait keeps the host from being ahead:
    only what is idle beyond them counts.
    """
    bounds = case.bounds
    others, waiting = host_causes_us(case), sum(each.waiting_us for each in waits)
    worth = max(0.0, bounds.step_us - others - max(bounds.device_us or 0.0, bounds.host_us - others))
    own = sum(max(0.0, each.host_us - each.waiting_us) for each in waits)
    return Removal(host=own if waiting and worth else 0.0, waiting=min(waiting, worth))


def _worst(waits: list[Waiting]) -> list[Waiting]:
    """Return the waits that make up nine tenths of the waiting, three at most."""
    total, kept, seen = sum(each.waiting_us for each in waits), [], 0.0
    for each in waits[:3]:
        kept.append(each)
        seen += each.waiting_us
        if seen >= 0.9 * total:
            break
    return kept


def _remedy(wait: Waiting) -> Remedy:
    advice = ADVICE.get(wait.name.replace("hip", "cuda", 1), USUAL)
    where = f"{wait.name}{at(wait.rows)}" if lines(wait.rows) else wait.name
    return Remedy({}, "the host runs ahead of the device again", f"{where}: {advice}")


RULE = Rule(
    code="synchronization",
    needs="calls of the device's runtime in the trace",
    speaks="the time in which the host waits in synchronising calls while the device works, as far as the device "
    "is idle "
    "for as long, reaches `min_gain` of the step, and the gaps of the device that these waits end in reach "
    "`stall_share` "
    "of that; a wait of a host that is ahead costs nothing and is not named",
    remedies="code, for each waiting operator, at the user's line",
    thresholds=("min_gain", "stall_share"),
    examine=examine,
    stacks=True,
)
