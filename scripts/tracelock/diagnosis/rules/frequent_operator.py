"""A loop calls one small operator hundreds of times a step."""

from __future__ import annotations

import re

from tracelock.analysis.costs import Repetition
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

# Written so by optimizers that take one parameter after the other, and by the backward pass: other rules' matter.
_NOT_A_LOOP = re.compile(r"^autograd::|^torch\.distributed|^nccl:|AccumulateGrad")


def examine(case: Case) -> Cause | None:
    """Return the cause where such a loop could gain ``min_gain``."""
    found = [each for each in _loops(case) if each.calls_per_step >= case.limits.repeated_calls]
    found = [each for each in found if each.mean_us <= case.limits.repeated_call_us]
    removal = Removal(device=sum(each.device_us for each in found), host=sum(each.host_us for each in found))
    gain = case.gain(removal)
    if not found or gain < case.limits.min_gain:
        return None
    main = found[0]
    advice = (
        f"{main.name}{at(main.rows)}: do the loop's work in one call (one torch.cat or torch.stack of a "
        f"list, a batched operator)"
    )
    return Cause(
        title=f"{main.name} is called {main.calls_per_step:,.0f} times a step by a loop: up to {percent(gain)} of "
        f"the step",
        removal=removal,
        share=case.share(removal.host),
        evidence=tuple(
            of_step(
                case,
                f"{each.name}: {each.calls_per_step:,.0f} calls of {each.mean_us:,.1f} µs",
                each.host_us,
                each.rows,
            )
            for each in found[:3]
        ),
        remedies=(
            Remedy({}, "one call instead of hundreds", advice),
            *(
                (Remedy({"compile": True}, "the loop is traced into fewer kernels"),)
                if case.setting("compile") is not True
                else ()
            ),
        ),
    )


def _loops(case: Case) -> list[Repetition]:
    """Return the loops of the steps outside of loader, optimizer and backward pass, the longest first."""
    found = [each for each in case.costs.repetitions if not each.in_loader] if case.costs else []
    return [each for each in found if not _NOT_A_LOOP.search(each.name) and not each.in_optimizer]


RULE = Rule(
    code="frequent-operator",
    needs="operators in the trace",
    speaks="an operator shorter than `repeated_call_us` is called `repeated_calls` times a step or more in a row "
    "(alone or with "
    "two others), and without these calls the step gains `min_gain`",
    remedies="code: one call instead of the loop, at the user's line; `compile`",
    thresholds=("repeated_calls", "repeated_call_us", "min_gain"),
    examine=examine,
    explains=("memory-sawtooth",),
)
