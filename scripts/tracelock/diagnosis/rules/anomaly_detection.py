"""Autograd's anomaly detection is switched on: it checks each gradient and keeps a stack for each operator."""

from __future__ import annotations

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule

NODES = 3  # checks a step: fewer are the user's own
CHECKS = 3  # operators of a check: isnan, any, item
STACK_US, MOST_STACK_US = 80.0, 300.0  # to write the stack of one operator, inside of it: as a rule, at most


def examine(case: Case) -> Cause | None:
    """Return the cause where nodes of the backward pass are checked for numbers that are none."""
    work = case.analysis.work
    found = next((each for each in work.unused if each.kind == "anomaly"), None) if work else None
    if work is None or found is None or found.calls_per_step < NODES or "aten::isnan" not in found.names:
        return None
    # The stack that it keeps for each operator of the forward pass is written inside of it, or shows as Python between.
    nodes, forward = found.calls_per_step / CHECKS, max(0.0, work.operators_us - work.backward_us)
    removal = Removal(host=found.host_us + work.between_us + min(forward, MOST_STACK_US * nodes))
    return Cause(
        title="Autograd's anomaly detection is switched on",
        removal=removal,
        likely=Removal(host=found.host_us + work.excess_us + min(forward / 2, STACK_US * nodes)),
        share=case.share(found.host_us),
        evidence=(
            of_step(case, f"{found.calls_per_step:,.0f} checks inside the backward pass", found.host_us, found.rows),
            of_step(case, "between operators, where it keeps a stack for each", work.between_us),
        ),
        remedies=(
            Remedy({}, "no checks and no stacks", "torch.autograd.set_detect_anomaly(False): it is made for debugging"),
        ),
    )


RULE = Rule(
    code="anomaly-detection",
    needs="operators, and steps, in the trace",
    speaks="`aten::isnan` follows the nodes of the backward pass, and without these checks and the Python between "
    "operators the step gains `min_gain`",
    remedies="code: switch it off",
    thresholds=("min_gain",),
    examine=examine,
    stacks=True,
)
