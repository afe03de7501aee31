"""The loop waits for its data: loading in the main process, or workers that deliver too slowly."""

from __future__ import annotations

from typing import Any

from tracelock.analysis.work import PythonTime
from tracelock.diagnosis import loading
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules.python_time import WORDS, called

CODE = "dataloader-bound"
FIRST_WORKERS = 4  # what most people start from; fewer where there are fewer cores
HIDDEN = 0.5  # of the limit: loading that shows for less of the step is hidden behind the device
TOLD = 0.1  # of the loading
PLACES = {"sample": "__getitem__", "collate": "collate", "loader": "the loader"}
UNKNOWN_WORKERS = 8  # to try where it is not known how many there are


def examine(case: Case) -> Cause | None:
    """Return the cause where a loader that never lets the loop wait could save ``dataloader_share`` of the step."""
    removal = loading.removal(case)
    gain = case.gain(removal)
    if case.gain(Removal(host=removal.host - loading.handover_us(case))) < case.limits.dataloader_share:
        return None
    share = _share(case, gain)
    if share < HIDDEN * case.limits.dataloader_share:
        return None  # the device works all the while: what idles elsewhere has another cause
    return Cause(
        title=f"The loop waits for its data: up to {percent(gain)} of the step, {_where(case)}{_which(case)}",
        removal=removal,
        likely=loading.likely(case),
        share=share,
        evidence=tuple(_evidence(case, share)),
        remedies=tuple(workers(case)),
    )


def _share(case: Case, gain: float) -> float:
    """Return the part of the step in which the loop waits and no device works; without a trace of it, the bound."""
    traced = case.analysis.step.dataloader_share
    return traced if traced is not None and (case.has_gpu or not case.timed("loading_us")) else gain


def _where(case: Case) -> str:
    return {
        True: "loading in the main process",
        False: "waiting for worker processes",
        None: "spent in the DataLoader",
    }[loading.in_main_process(case)]


def _evidence(case: Case, share: float) -> list[Evidence]:
    step = case.step_us or 0.0
    idle = ", while the device computes nothing" if case.has_gpu else ""
    text = f"DataLoader{idle}: {per_step(share * step)} of {per_step(step)} a step"
    evidence = [Evidence(text, share, "share of step", case.limits.dataloader_share)]
    evidence += [of_step(case, _in_python(each), each.host_us, each.rows) for each in _python(case)]
    for row in loading.rows(case):
        evidence.append(Evidence(f"{row.name}: {row.calls} calls, {row.total_cpu_us:,.0f} µs", row.total_cpu_us, "µs"))
    for gpu in case.analysis.gpus:
        if gpu.idle_causes_us and gpu.idle_us:
            waited = gpu.idle_causes_us.dataloader / gpu.idle_us
            text = f"GPU {gpu.id}: {percent(waited)} of its idle time fell into loading"
            evidence.append(Evidence(text, waited, "share"))
    return evidence


def _python(case: Case) -> list[PythonTime]:
    """Return the frames in the loader that take `TOLD` of its time or more each, the longest first."""
    work, costs = case.analysis.work, case.costs
    found = work.python or () if work else ()
    least = TOLD * costs.loading_us if costs else 0.0
    return [each for each in found if each.place != "step" and each.host_us >= least][:3]


def _which(case: Case) -> str:
    """Return what most of the loader's time goes into, where frames tell: `` (collate sleeps at train.py(12))``."""
    found, costs = _python(case), case.costs
    if not found or costs is None or found[0].host_us < costs.loading_us / 2:
        return ""
    return f" ({PLACES[found[0].place]} {WORDS[found[0].kind]}{at(found[0].rows)})"


def _in_python(each: PythonTime) -> str:
    where = PLACES[each.place]
    return f"{where} {WORDS[each.kind]}: {called(each.rows[0].name)}, {each.calls_per_step:,.1f} calls{at(each.rows)}"


def workers(case: Case) -> list[Remedy]:
    """Return the remedies that bring workers, or better ones, by what is in force."""
    return _first_workers(case) if loading.in_main_process(case) is not False else _better_workers(case)


def _first_workers(case: Case) -> list[Remedy]:
    settings: dict[str, Any] = {"num_workers": min(FIRST_WORKERS, case.cores or FIRST_WORKERS)}
    settings["persistent_workers"] = True
    if case.has_gpu and case.setting("pin_memory") is not True:
        settings["pin_memory"] = True
    advice = "decode or preprocess once and store the result; load less than you crop away"
    return [
        Remedy(settings, "loading runs beside the step; the DataLoader's part of the step shrinks"),
        Remedy({}, "each sample costs less", advice),
    ]


def _better_workers(case: Case) -> list[Remedy]:
    workers = case.setting("num_workers") or UNKNOWN_WORKERS // 2
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
    needs="rows of the DataLoader's iterator (`enumerate(DataLoader)#….__next__`), which PyTorch records by itself; "
    "with the run's facts, the time in `next(loader)` of the timed steps",
    speaks="the loop's time in the loader, as far as the device is idle for as long, reaches `dataloader_share`",
    remedies="loading in the main process: `num_workers` (4, or as many as there are cores) with "
    "`persistent_workers`, and `pin_memory` where there is a GPU; with workers in use: twice as many, twice the "
    "`prefetch_factor`, `persistent_workers`; code: cheaper samples",
    thresholds=("dataloader_share", "critical_gain"),
    examine=examine,
    stacks=True,
)
