"""Workers are started again in each epoch, and the first batches wait for them."""

from __future__ import annotations

from tracelock.diagnosis import loading
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where the first batches of the epochs are ``startup_share`` of all waiting for data."""
    starting = loading.startup_us(case)
    waiting = case.timed_mean("loading_us") or 0.0
    if case.setting("persistent_workers") is True or not case.setting("num_workers"):
        return None
    if not waiting or starting / waiting < case.limits.startup_share:
        return None
    share = min(1.0, starting / (case.timed_mean("step_us") or starting))
    if share < case.limits.min_gain:
        return None
    return Cause(
        title=f"Workers are started anew in each epoch: {percent(share)} of the time of the steps",
        removal=None,  # the few recorded steps need not hold the beginning of an epoch
        share=share,
        gain=share,
        evidence=_evidence(case, starting, waiting),
        remedies=(
            Remedy(
                {"persistent_workers": True}, "workers stay from epoch to epoch; only the first epoch waits for them"
            ),
            Remedy(
                {},
                "workers start faster",
                "open the data set in `__init__`, not in `__getitem__` or `worker_init_fn`; import less",
            ),
        ),
    )


def _evidence(case: Case, starting: float, waiting: float) -> tuple[Evidence, ...]:
    starts = ((case.run or {}).get("timed") or {}).get("epoch_starts") or []
    waits = case.timed("loading_us")
    shown = ", ".join(f"step {step}: {waits[step]:,.0f} µs" for step in starts[:3] if step < len(waits))
    return (
        Evidence(
            f"first batches of epochs: {per_step(starting)} of {per_step(waiting)} a step spent waiting for data",
            starting / waiting,
            "share of waiting",
            case.limits.startup_share,
        ),
        Evidence(f"time in next(loader) where an epoch begins: {shown}"),
    )


RULE = Rule(
    code="worker-startup",
    needs="the run's facts: `timed.loading_us`, `timed.epoch_starts`, and `persistent_workers` not in force",
    speaks="what the first batches of the epochs wait beyond the median batch reaches `startup_share` of all "
    "waiting for "
    "data and `min_gain` of the step",
    remedies="`persistent_workers`; code: open the data set in `__init__`",
    thresholds=("startup_share", "min_gain"),
    examine=examine,
    explains=("dataloader-bound",),
)
