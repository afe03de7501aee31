"""The optimizer takes the step on the host: parameters one by one, or all rows of a table of which few are used."""

from __future__ import annotations

from tracelock.analysis.costs import Updating
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

TOGETHER = 0.7  # of an optimizer that goes parameter by parameter is left as a rule when it takes them together
LEFT = 0.2  # is left at the least: the arithmetic itself
SPARSE = (
    "nn.Embedding(..., sparse=True) with torch.optim.SparseAdam for the table: only rows of the batch get a gradient "
    "and an update"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where the optimizer takes ``update_share`` of the step in either way."""
    work = case.analysis.work
    optimizer = case.costs.optimizer if case.costs else None
    if work is None or optimizer is None or case.has_gpu:
        return None
    share = case.share(optimizer.host_us) or 0.0
    if share < case.limits.update_share:
        return None
    if work.embedding_us >= case.limits.min_gain * case.bounds.step_us:
        return _dense(case, optimizer, work.embedding_us, work.between_us)
    many = optimizer.one_by_one and optimizer.operators_per_step >= case.limits.repeated_calls
    return _one_by_one(case, optimizer, share) if many else None


def _dense(case: Case, optimizer: Updating, tables: float, between: float) -> Cause:
    spent = optimizer.host_us + tables
    return Cause(
        title=f"The optimizer updates every row of a table of which batches use few: {percent(case.share(spent) or 0)}",
        removal=Removal(host=spent + between),  # memory that is freed shows between operators
        likely=Removal(host=spent),
        share=case.share(spent),
        evidence=(*_updates(case, optimizer), of_step(case, "dense gradients of embeddings", tables)),
        remedies=(Remedy({}, "the optimizer costs as much as the rows of a batch", SPARSE),),
        explains=("dominant-operator",),
    )


def _one_by_one(case: Case, optimizer: Updating, share: float) -> Cause:
    remedies = [Remedy({"optimizer_fused": True}, "one call for all parameters instead of several for each")]
    if case.setting("optimizer_foreach") is not True:
        remedies.append(Remedy({"optimizer_foreach": True}, "a call for many parameters at once"))
    return Cause(
        title=f"The optimizer updates parameters one by one: {percent(share)} of the step",
        removal=Removal(host=(1 - LEFT) * optimizer.host_us),
        likely=Removal(host=(1 - TOGETHER) * optimizer.host_us),
        share=share,
        evidence=_updates(case, optimizer),
        remedies=tuple(remedies),
    )


def _updates(case: Case, optimizer: Updating) -> tuple[Evidence, ...]:
    what = f"the optimizer's step, {optimizer.operators_per_step:,.0f} operators"
    return (of_step(case, what, optimizer.host_us),)


RULE = Rule(
    code="optimizer-bound",
    needs="the optimizer's label, which PyTorch records by itself, and steps, in the trace; no device",
    speaks="the optimizer takes `update_share` of the step, and either makes `repeated_calls` calls, none of them for "
    "many parameters at once, or follows dense gradients of embeddings that take `min_gain`",
    remedies="`optimizer_fused`, `optimizer_foreach`; code: sparse gradients",
    thresholds=("update_share", "repeated_calls", "min_gain"),
    examine=examine,
)
