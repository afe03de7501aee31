"""The loop waits for its data: loading in the main process, or workers that deliver too slowly."""

from __future__ import annotations

from typing import Any

from tracelock.diagnosis import loading
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import confidence, per_step, percent, severity
from tracelock.diagnosis.model import Evidence, Finding, Remedy
from tracelock.diagnosis.rule import Rule

CODE = "dataloader-bound"
FIRST_WORKERS = 4  # what most people start from; fewer where there are fewer cores


def examine(case: Case) -> Finding | None:
    """Return the finding where the exposed part of loading reaches ``dataloader_share`` of the step."""
    share = case.analysis.step.dataloader_share
    if share is None or share < case.limits.dataloader_share:
        return None
    return Finding(
        code=CODE,
        title=f"The loop waits for its data: {percent(share)} of the step is {_where(case)}",
        severity=severity(case, share),
        share_of_step=share,
        gain_at_most=share,
        confidence=confidence(case),
        evidence=tuple(_evidence(case, share)),
        remedies=tuple(_remedies(case)),
    )


def _where(case: Case) -> str:
    return {
        True: "loading in the main process",
        False: "waiting for worker processes",
        None: "spent in the DataLoader",
    }[loading.in_main_process(case)]


def _evidence(case: Case, share: float) -> list[Evidence]:
    step = case.step_us or 0.0
    text = f"DataLoader, not hidden behind the device: {per_step(share * step)} of {per_step(step)} a step"
    evidence = [Evidence(text, share, "share of step", case.limits.dataloader_share)]
    for row in loading.rows(case):
        evidence.append(Evidence(f"{row.name}: {row.calls} calls, {row.total_cpu_us:,.0f} µs", row.total_cpu_us, "µs"))
    for gpu in case.analysis.gpus:
        if gpu.idle_causes_us and gpu.idle_us:
            waited = gpu.idle_causes_us.dataloader / gpu.idle_us
            evidence.append(
                Evidence(f"GPU {gpu.id}: {percent(waited)} of its idle time fell into loading", waited, "share")
            )
    return evidence


def _remedies(case: Case) -> list[Remedy]:
    return _first_workers(case) if loading.in_main_process(case) is not False else _better_workers(case)


def _first_workers(case: Case) -> list[Remedy]:
    settings: dict[str, Any] = {"num_workers": min(FIRST_WORKERS, case.cores or FIRST_WORKERS)}
    settings["persistent_workers"] = True
    if case.has_gpu and case.setting("pin_memory") is not True:
        settings["pin_memory"] = True
    return [
        Remedy(settings, "loading runs beside the step; the DataLoader's part of the step shrinks"),
        Remedy(
            {}, "each sample costs less", "decode or preprocess once and store the result; load less than you crop away"
        ),
    ]


def _better_workers(case: Case) -> list[Remedy]:
    workers = case.setting("num_workers") or 1
    prefetch = case.setting("prefetch_factor") or 2
    more = min(2 * workers, case.cores or 2 * workers)
    remedies = []
    if more > workers:
        remedies.append(Remedy({"num_workers": more}, "more workers load beside the step"))
    remedies.append(Remedy({"prefetch_factor": 2 * prefetch}, "batches of uneven cost even out in a longer queue"))
    if case.setting("persistent_workers") is False:
        remedies.append(Remedy({"persistent_workers": True}, "workers are not started again in each epoch"))
    advice = "make decode, augmentation and collate cheaper: that is what the workers spend their time on"
    return [*remedies, Remedy({}, "each batch costs the workers less", advice)]


RULE = Rule(
    code=CODE,
    needs="rows of the DataLoader's iterator (`enumerate(DataLoader)#….__next__`), which PyTorch records by itself",
    speaks="the part of the step in which the loop waits for a batch, and no device works, reaches `dataloader_share`",
    thresholds=("dataloader_share", "critical_gain"),
    examine=examine,
)
