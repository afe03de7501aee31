"""Work that training does not need, or that is done twice: a second forward pass, validation, statistics."""

from __future__ import annotations

from tracelock.analysis.work import Unused
from tracelock.diagnosis import recurring
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

SPOILED = 1.5  # with its memory, its graph and the caches that it spoils, real cases cost up to half more than it took
LIKELY = 1.2
# A layer that is computed again saves and restores more than it computes: random states, hooks on what it kept.
SPOILED_AGAIN = 2.0
BESIDE = 0.1  # of the step: what no gradient goes through may still be needed (masks, preparing of inputs)
ORDINALS = {2: "nd", 3: "rd"}
WORDS = {
    "forward": "layers run that no backward pass belongs to (a second forward pass, validation, another network)",
    "statistics": "operators that count, check or log, and neither a gradient nor the optimizer needs",
    "beside": "operators work that no gradient goes through and that are no layers (masks, tables, inputs prepared)",
    "repeated-backward": "the backward pass goes through the same nodes again",
    "recomputation": "the forward pass is computed again inside the backward pass (checkpointing)",
}
ADVICE = {
    "forward": "use the output that the training has already; validate every few hundred steps, in torch.no_grad()",
    "statistics": "log every hundredth step, and all parameters in one call",
    "beside": "compute it once and keep it, or in the loader; leave out what nothing uses",
    "repeated-backward": "add the losses and call backward() once; retain_graph=True is seldom needed",
    "recomputation": "torch.utils.checkpoint saves memory for time: use it only for the layers that do not fit",
}


def examine(case: Case) -> Cause | None:
    """Return the cause where such work reaches ``min_gain`` of the step."""
    work = case.analysis.work
    if work is None:
        return None
    found = [each for each in work.unused if each.kind in WORDS and _recurs(case, each)]
    found = [each for each in found if each.kind != "beside" or _is_much(case, each)]
    found.sort(key=lambda each: -max(each.host_us, each.device_us))
    host, device = sum(each.host_us for each in found), sum(each.device_us for each in found)
    if not found or case.gain(Removal(host=host, device=device, most=max(host, device))) < case.limits.min_gain:
        return None
    bounds = case.bounds
    spent = host if bounds.device_us is None or bounds.host_us > bounds.device_us else device  # of the longer chain
    main, most = found[0], min(sum(map(_most_us, found)), case.bounds.step_us)
    likely = Removal(host=LIKELY * host, device=device, most=max(LIKELY * host, device))
    return Cause(
        title=f"In {_how_often(case, main)} {WORDS[main.kind]}: {percent(case.share(spent) or 0.0)} of the time",
        removal=Removal(host=most, device=SPOILED * device, most=max(most, SPOILED * device)),
        likely=likely,
        share=case.share(spent),
        evidence=tuple(
            of_step(
                case,
                f"{WORDS[each.kind]}: {each.calls_per_step:,.0f} calls, {', '.join(each.names)}",
                max(each.host_us, each.device_us),
                each.rows,
            )
            for each in found[:3]
        ),
        remedies=tuple(
            Remedy({}, "the step loses this work", f"{ADVICE[each.kind]}{at(each.rows)}") for each in found[:2]
        ),
        confidence="medium",  # what the user needs, the trace does not tell
        explains=("step-gaps",) if main.steps < case.steps else (),
    )


def _most_us(unused: Unused) -> float:
    return (SPOILED_AGAIN if unused.kind == "recomputation" else SPOILED) * unused.host_us


def _is_much(case: Case, unused: Unused) -> bool:
    """Return whether it is worth asking what it is for; beside a device inputs are prepared so."""
    return not case.has_gpu and (case.share(unused.host_us) or 0.0) >= BESIDE


def _recurs(case: Case, unused: Unused) -> bool:
    return recurring.is_recurring(case, unused.steps, unused.host_us)


def _how_often(case: Case, unused: Unused) -> str:
    if unused.every is not None:
        return f"every {unused.every}{ORDINALS.get(unused.every, 'th')} step"
    return "every step" if unused.steps >= case.steps else f"{unused.steps} of {case.steps} steps"


RULE = Rule(
    code="unused-work",
    needs="operators with sequence numbers, and steps, in the trace",
    speaks="layers that no node of the backward pass belongs to, layers inside the backward pass, nodes that run twice "
    "in a step, or operators beside training that only count, check and read reach `min_gain` of the step; "
    "without a device, other operators that no gradient goes through where they are a tenth of it; beside a device "
    "both the host's time and the device's count",
    remedies="code: by its kind, at the user's line",
    thresholds=("min_gain",),
    examine=examine,
    stacks=True,
)
