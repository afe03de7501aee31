"""Operators that only copy take a large part of the step: clones, casts, tensors made contiguous."""

from __future__ import annotations

from tracelock.analysis.work import Copies
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

SPOILED = (
    1.25  # a copy drives out of the caches what the next operators need: without twenty, real ones ran a fifth faster
)
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
    if work is None or case.has_gpu or not work.copies:
        return None
    spent = sum(each.host_us for each in work.copies)
    if (case.share(spent) or 0.0) < case.limits.copies_share:
        return None
    main = work.copies[0]
    told = ", ".join(WORDS[each.kind] for each in work.copies[:2] if each.host_us >= spent / 4)
    return Cause(
        title=f"Copies of tensors take {percent(case.share(spent) or 0.0)} of the step ({told})",
        removal=Removal(host=SPOILED * spent),
        likely=Removal(host=spent),
        share=case.share(spent),
        evidence=tuple(of_step(case, _counted(each), each.host_us, each.rows) for each in work.copies[:3]),
        remedies=(Remedy({}, "the copies are gone, and what follows them finds its data in the cache", _advice(main)),),
        confidence="medium",  # which of them are needed, the trace does not tell
    )


def _counted(copies: Copies) -> str:
    return f"{copies.calls_per_step:,.0f} {WORDS[copies.kind]} a step"


def _advice(main: Copies) -> str:
    return f"{ADVICE[main.kind]}{at(main.rows)}"


RULE = Rule(
    code="needless-copies",
    needs="steps in the trace, and no device: there, copies are fast",
    speaks="`clone`, `contiguous`, casts and `copy_` in the forward and backward pass, outside of loops and of "
    "operators that compute, take `copies_share` of the step",
    remedies="code: fewer copies, by their kind, at the user's line",
    thresholds=("copies_share",),
    examine=examine,
)
