"""Tensors of double precision: twice the memory, half the speed or less, and seldom meant."""

from __future__ import annotations

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

HALF = 0.5  # single precision moves half the bytes and multiplies twice as many numbers at a time
ADVICE = (
    "find where float64 comes in (numpy arrays and Python floats in torch.tensor(np.…) are double): .float() in the "
    "data set, dtype=torch.float32, no .double()"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where half of the time in operators on float64 tensors is ``min_gain`` of the step."""
    work = case.analysis.work
    if work is None or not work.double_us:
        return None
    spent = work.double_device_us if case.has_gpu else work.double_us
    removal = Removal(device=spent) if case.has_gpu else Removal(host=spent)
    likely = Removal(host=HALF * removal.host, device=HALF * removal.device)
    if case.gain(likely) < case.limits.min_gain:
        return None
    return Cause(
        title=f"{percent(case.share(spent) or 0.0)} of the step is computed in double precision (float64)",
        removal=removal,
        likely=likely,
        share=case.share(spent),
        evidence=(of_step(case, "operators with float64 tensors among their inputs", spent),),
        remedies=(Remedy({}, "operators take half as long or less", ADVICE),),
    )


RULE = Rule(
    code="wrong-dtype",
    needs="input shapes and types in the trace (`record_shapes=True`), and steps",
    speaks="half of the time in operators on tensors of float64 (mere numbers left out), beside a device of what it "
    "works for them, reaches `min_gain` of the step",
    remedies="code: float32 where float64 comes in",
    thresholds=("min_gain",),
    examine=examine,
    stacks=True,
)
