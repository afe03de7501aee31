"""Workers are started again in each epoch, and the first batches wait for them."""

from __future__ import annotations

from tracelock.diagnosis import loading
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import of_step, per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule


def examine(case: Case) -> Cause | None:
    """Return the cause where the first batches of the epochs are ``startup_share`` of all waiting for data."""
    if case.setting("persistent_workers") is True or case.setting("num_workers") == 0:
        return None
    if not case.timed("loading_us"):
        return _traced(case)
    starting = loading.startup_us(case)
    waiting = case.timed_mean("loading_us") or 0.0
    if not case.setting("num_workers") or not waiting or starting / waiting < case.limits.startup_share:
        return None
    share = min(1.0, starting / (case.timed_mean("step_us") or starting))
    if share < case.limits.min_gain:
        return None
    return _cause(case, f"{percent(share)} of the time of the steps", share, _evidence(case, starting, waiting))


def _traced(case: Case) -> Cause | None:
    """Return the cause where the trace itself shows workers starting: a pause, then a long wait of a new iterator."""
    starting, pauses = loading.traced_startup_us(case), loading.start_pauses(case)
    share = case.share(starting) or 0.0
    if share < case.limits.min_gain:
        return None
    paused, steps = sum(each.host_us for each in pauses), max(each.steps for each in pauses)
    evidence = (
        of_step(case, "nothing recorded right before the loader is asked", paused, pauses[0].rows),
        of_step(case, "waiting for these first batches beyond the usual wait", starting - paused),
        Evidence(f"{steps} of {case.steps} recorded steps begin so", steps / max(1, case.steps), "share of steps"),
    )
    return _cause(case, f"{percent(share)} of the recorded steps", share, evidence)


def _cause(case: Case, how_much: str, share: float, evidence: tuple[Evidence, ...]) -> Cause:
    return Cause(
        title=f"Workers are started anew in each epoch: {how_much}",
        removal=None,  # the few recorded steps need not hold the beginning of an epoch
        share=share,
        gain=share,
        evidence=evidence,
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
    needs="the run's facts (`timed.loading_us`, `timed.epoch_starts`), or without them rows of an iterator with "
    "workers; `persistent_workers` not in force",
    speaks="what the first batches of the epochs wait beyond the median batch reaches `startup_share` of all waiting "
    "for data and `min_gain` of the step; in a bare trace, stretches with nothing recorded lead to waits five times "
    "as long as the others, and both together reach `min_gain`",
    remedies="`persistent_workers`; code: open the data set in `__init__`",
    thresholds=("startup_share", "min_gain"),
    examine=examine,
    explains=("dataloader-bound",),
)
