"""Operators that only copy take a large part of the step: clones, casts, tensors made contiguous."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.analysis.work import Copies, Work
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

SPOILED = (
    1.25  # a copy drives out of the caches what the next operators need: without twenty, real ones ran a fifth faster
)
ON_DEVICE = 2.0  # times the limit: networks whose norms cast copy for 15 % of their device's time, and are as meant
BACKWARD = 2.0  # beside a device the backward pass has a thread of its own, and copies as much
WORDS = {"clone": "clones", "contiguous": "copies into contiguous memory", "cast": "casts", "copy": "copies"}
ADVICE = {
    "clone": "let go of clone() where nothing changes the tensor in place; detach() copies nothing",
    "contiguous": "keep one layout from layer to layer: transpose once, and not there and back",
    "cast": "keep one dtype from layer to layer; cast inputs once, in the loader; check that autocast is faster here",
    "copy": "write results where they are needed (out=, in-place), and do not copy what is only read",
}


def examine(case: Case) -> Cause | None:
    """Return the cause where copies on the host take ``copies_share`` of the step."""
    work = case.analysis.work
    if work is None or not work.copies:
        return None
    found = sorted(work.copies, key=lambda each: -_spent_us(case, each))
    spent = sum(_spent_us(case, each) for each in found)
    if (case.share(spent) or 0.0) < (ON_DEVICE if case.has_gpu else 1.0) * case.limits.copies_share:
        return None
    main = found[0]
    told = ", ".join(WORDS[each.kind] for each in found[:2] if _spent_us(case, each) >= spent / 4)
    return Cause(
        title=f"Copies of tensors take {percent(case.share(spent) or 0.0)} of the step ({told})",
        removal=_removal(case, found, _most(case, work)),
        likely=_removal(case, found, 1.0),
        share=case.share(spent),
        evidence=tuple(of_step(case, _counted(each), _spent_us(case, each), each.rows) for each in found[:3]),
        remedies=(Remedy({}, "the copies are gone, and what follows them finds its data in the cache", _advice(main)),),
        confidence="medium",  # which of them are needed, the trace does not tell
    )


def _most(case: Case, work: Work) -> float:
    if not case.has_gpu:
        return SPOILED
    return BACKWARD if work.trains else 1.0


def _spent_us(case: Case, copies: Copies) -> float:
    """Return what copies take: of the device where there is one, as its kernels or copies; else of the host."""
    return copies.device_us if case.has_gpu else copies.host_us


def _removal(case: Case, found: Sequence[Copies], times: float) -> Removal:
    host = times * sum(each.host_us for each in found if not case.has_gpu or each.device_us)
    if not case.has_gpu:
        return Removal(host=host)
    device = times * sum(each.device_us for each in found)
    return Removal(host=host, device=device, most=max(host, device))


def _counted(copies: Copies) -> str:
    return f"{copies.calls_per_step:,.0f} {WORDS[copies.kind]} a step"


def _advice(main: Copies) -> str:
    return f"{ADVICE[main.kind]}{at(main.rows)}"


RULE = Rule(
    code="needless-copies",
    needs="steps in the trace",
    speaks="`clone`, `contiguous`, casts and `copy_` in the forward and backward pass, outside of loops and of "
    "operators that compute, take `copies_share` of the step, beside a device twice as much of what it works",
    remedies="code: fewer copies, by their kind, at the user's line",
    thresholds=("copies_share",),
    examine=examine,
    stacks=True,
)
