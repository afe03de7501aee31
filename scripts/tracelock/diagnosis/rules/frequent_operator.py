"""A loop calls one small operator hundreds of times a step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracelock.analysis.costs import Repetition
from tracelock.analysis.work import Loop
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

# Written so by optimizers that take one parameter after the other, and by the backward pass: other rules' matter.
_NOT_A_LOOP = re.compile(r"^autograd::|^torch\.distributed|^nccl:|AccumulateGrad")
SPOILED = 1.1  # small tensors that come and go cost beside the loop, too: real ones cost a twelfth more than it took
IN_ONE_CALL = 0.8  # of a loop of small operators is dispatch, which a single call saves

BETWEEN_KERNELS_US = 1.0  # kernels that wait in one stream follow each other within 1-2 µs


def examine(case: Case) -> Cause | None:
    """Return the cause where such a loop could gain ``min_gain``."""
    if not case.has_gpu and case.analysis.work is not None:
        return _on_host(case, case.analysis.work.loops) if case.analysis.work.loops else None
    found = [each for each in _loops(case) if each.calls_per_step >= case.limits.repeated_calls]
    found = [each for each in found if each.mean_us <= case.limits.repeated_call_us]
    calls = Removal(device=sum(map(_device_us, found)), host=sum(each.host_us for each in found))
    between = sum(each.between_us for each in found)  # the Python of the loop goes with its calls
    removal = calls + Removal(host=between)
    if not found or case.gain(calls) < case.limits.min_gain:
        return None
    gain = case.gain(removal)
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
                f"{each.name}: {each.calls_per_step:,.0f} calls of {each.mean_us:,.1f} µs, with the time between them",
                each.host_us + each.between_us,
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


def _on_host(case: Case, loops: Sequence[Loop]) -> Cause | None:
    """Return the cause by sequences of any length, with the Python between their operators and their backward pass."""
    found = [each for each in loops if each.host_us <= case.limits.repeated_call_us * each.calls_per_step]
    calls = sum(each.calls_per_step for each in found)
    spent = sum(each.host_us + each.backward_us for each in found)
    removal = Removal(host=SPOILED * spent)
    gain = case.gain(removal)
    if calls < case.limits.repeated_calls or gain < case.limits.min_gain:
        return None
    main = found[0]
    advice = f"{', '.join(main.names[:4])}{at(main.rows)}: do the work of all turns in one call (a batched operator)"
    return Cause(
        title=f"A loop calls {_names(main)} {main.turns_per_step:,.0f} times a step: up to {percent(gain)} of the step",
        removal=removal,
        likely=Removal(host=IN_ONE_CALL * spent),
        share=case.share(spent),
        evidence=tuple(_turns(case, each) for each in found[:3]),
        remedies=(Remedy({}, "one call instead of hundreds", advice),),
    )


def _names(loop: Loop) -> str:
    shown = " + ".join(loop.names[:3])
    return shown if len(loop.names) <= 3 else f"{shown} and {len(loop.names) - 3} more"


def _turns(case: Case, loop: Loop) -> Evidence:
    what = f"{loop.turns_per_step:,.0f} turns of {_names(loop)}, with their backward pass"
    return of_step(case, what, loop.host_us + loop.backward_us, loop.rows)


def _device_us(loop: Repetition) -> float:
    """Return the device's time a step in a loop's kernels and in the gap that a stream makes after each of them."""
    return loop.device_us + BETWEEN_KERNELS_US * loop.calls_per_step if loop.device_us else 0.0


def _loops(case: Case) -> list[Repetition]:
    """Return the loops of the steps outside of loader, optimizer and backward pass, the longest first."""
    found = [each for each in case.costs.repetitions if not each.in_loader] if case.costs else []
    known = case.costs.waits if case.costs and case.has_gpu else ()
    waits = {each.name for each in known if each.waiting_us and each.kind in ("synchronization", "copy")}
    return [
        each for each in found if not _NOT_A_LOOP.search(each.name) and not each.in_optimizer | (each.name in waits)
    ]


RULE = Rule(
    code="frequent-operator",
    needs="operators in the trace",
    speaks="an operator shorter than `repeated_call_us` is called `repeated_calls` times a step or more in a row "
    "(alone or with two others; without a device in sequences of any length, each turn with its backward pass), and "
    "without these calls the step gains `min_gain`",
    remedies="code: one call instead of the loop, at the user's line; `compile`",
    thresholds=("repeated_calls", "repeated_call_us", "min_gain"),
    examine=examine,
    stacks=True,
    explains=("memory-sawtooth",),
)
