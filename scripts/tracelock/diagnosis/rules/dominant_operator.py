"""A single operator that is no matrix product takes a large part of the work, in few calls."""

from __future__ import annotations

import re

from tracelock.analysis.model import Operator
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.where import rows_of

# What libraries have made as fast as it gets, what merely waits or moves, and what only wraps others.
_EXPECTED = re.compile(
    r"conv|(^|::)(_?addmm|b?mm|baddbmm|matmul|linear|einsum|bmm)\b|attention|_foreach_|_fused_|lstm|gru|rnn"
    r"|batch_norm|layer_norm|group_norm|copy_$|::to$|_to_copy|nccl|rccl|gloo|c10d|distributed|Optimizer\.|^enumerate\(|^ProfilerStep"
    r"|^autograd::|AccumulateGrad|CompiledFunction|Torch-Compiled|triton|::(item|_local_scalar_dense|is_nonzero)$|record_param_comms",
    re.IGNORECASE,
)


def examine(case: Case) -> Cause | None:
    """Return the cause where an operator's own time is ``dominant_share`` of the work in ``dominant_calls`` a step."""
    worst = max(
        (row for row in case.analysis.operators if _is_odd(case, row)), key=lambda row: _own(case, row), default=None
    )
    if worst is None or not case.steps:
        return None
    own, whole = _own(case, worst), _whole(case)
    removal = Removal(device=own) if case.has_gpu else Removal(host=own)
    if not whole or own / whole < case.limits.dominant_share or case.gain(removal) < case.limits.min_gain:
        return None
    rows = rows_of(case, worst.name)
    calls = worst.calls / case.steps
    advice = (
        f"{worst.name}{at(rows)}: look for a faster form (vectorised, a fused kernel, sorted or smaller "
        f"input, another dtype)"
    )
    return Cause(
        title=f"{worst.name} takes {percent(own / whole)} of the work in {calls:,.0f} calls a step",
        removal=removal,
        share=case.share(own),
        evidence=(of_step(case, f"{worst.name} itself, {calls:,.1f} calls", own, rows),),
        remedies=(Remedy({}, "the step loses what this operator takes too long", advice),),
        confidence="medium",
    )


def _own(case: Case, row: Operator) -> float:
    """Return an operator's own time a step: on the device where there is one."""
    own = row.self_device_us if case.has_gpu else row.self_cpu_us
    return (own or 0.0) / max(1, case.steps)


def _whole(case: Case) -> float:
    bounds = case.bounds
    return (bounds.device_us or 0.0) if case.has_gpu else bounds.step_us


def _is_odd(case: Case, row: Operator) -> bool:
    few = row.calls <= case.limits.dominant_calls * max(1, case.steps)
    return few and _EXPECTED.search(row.name) is None


RULE = Rule(
    code="dominant-operator",
    needs="operators in the trace",
    speaks="an operator that is no matrix product, convolution, attention, normalisation, copy, collective or "
    "optimizer takes "
    "`dominant_share` of the work by itself, in `dominant_calls` a step or fewer, and without it the step gains "
    "`min_gain`",
    remedies="code: a faster form of the operator, at the user's line",
    thresholds=("dominant_share", "dominant_calls", "min_gain"),
    examine=examine,
    stacks=True,
)
