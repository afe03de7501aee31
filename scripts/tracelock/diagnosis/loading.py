"""How batches were loaded, as far as a trace, the run and the settings tell."""

from __future__ import annotations

import math
from statistics import fmean, median

from tracelock.analysis.costs import Pause
from tracelock.analysis.model import Operator
from tracelock.diagnosis.case import Case, Removal

FIRST = 5  # usual waits: a first batch is waited for that long at least while workers start
HANDOVER = 700.0  # µs: a batch of a few MB out of shared memory
WAITS = 0.05  # of the step: a host that waits for its device that long is not ahead of it
ONCE = 0.5  # of the mean: less than that is left without the worst step, which then decides it
SINGLE, MULTI = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"


def rows(case: Case) -> list[Operator]:
    """Return the DataLoader's iterators among operators and labels, the longest first."""
    tables = (*case.analysis.operators, *case.analysis.labels)
    found = [row for row in tables if row.name.startswith("enumerate(Data")]
    return sorted(found, key=lambda row: -row.total_cpu_us)


def in_main_process(case: Case) -> bool | None:
    """Return whether batches are made in the main process; None where neither trace nor settings say so.

    PyTorch names the row after the class of the iterator; the settings decide where that name is another.
    """
    names = " ".join(row.name for row in rows(case)[:1])
    if SINGLE in names or MULTI in names:
        return SINGLE in names
    workers = case.setting("num_workers")
    return None if workers is None else workers == 0


def wait_us(case: Case) -> float:
    """Return the host's time in the loader, mean over the steps; without the profiler where the run tells it.

    On the CPU the trace's step is divided as the timed steps are: the mean of the waiting, which may come every few
    steps, beside the median of the rest, which other programs disturb.
    """
    waits, steps = case.timed("loading_us"), case.timed("step_us")
    if not waits or len(waits) != len(steps):
        return case.costs.loading_us if case.costs else 0.0
    waited = fmean(waits)
    if case.has_gpu:
        return waited
    rest = median(step - wait for step, wait in zip(steps, waits, strict=True))
    return waited / (waited + rest) * case.bounds.step_us if waited + rest > 0 else 0.0


def removal(case: Case) -> Removal:
    """Return what a loader that never lets the loop wait takes out of a step at most.

    A host that loads comes late to the copies of its batches, which then hide behind no kernel: those may go, too.
    """
    copies = [each for each in (case.costs.copies if case.costs else ()) if each.kind == "HtoD"]
    shown = (max(each.waiting_us, each.exposed_us if each.beside_kernels else 0.0) for each in copies)
    hidden = sum(min(each.device_us, time) for each, time in zip(copies, shown, strict=True))
    return Removal(host=max(wait_us(case), _produced_us(case)), waiting=hidden)


def _produced_us(case: Case) -> float:
    """Return what the loop waits for workers, by the step of `Case.bounds`, where the profiler hid a part of it.

    Workers that are too slow give the step its length, with the profiler and without: what the profiler adds to the
    rest of the loop is waited for when it is gone. 0 where a run tells the waits, or workers do not load.
    """
    batches, costs = case.analysis.loading, case.costs
    if case.has_gpu or costs is None or case.timed("loading_us") or batches is None or batches.mode != "workers":
        return 0.0
    if wait_us(case) <= handover_us(case):
        return 0.0
    step, shorter = costs.bounds.step_us, case.bounds.step_us
    return (wait_us(case) + step - shorter) * shorter / step if step else 0.0


def likely(case: Case) -> Removal:
    """Return what a better loader is expected to take out of a step, without a worst step that is most of it."""
    whole = max(0.0, min(wait_us(case), _uncovered_us(case)) - handover_us(case))
    timed = case.timed("loading_us")
    waits = timed or [each.wait_us for each in (case.analysis.loading.waits if case.analysis.loading else ())]
    scale = case.inflation if timed and not case.has_gpu else 1.0  # measured by the clock, not by the profiler
    if len(waits) < max(2.0, case.limits.confident_steps) or not sum(waits):
        return Removal(host=whole * scale)
    rest = (sum(waits) - max(waits)) / (len(waits) - 1)
    once = rest < ONCE * fmean(waits)
    return Removal(host=whole * scale * (rest / fmean(waits) if once else 1.0))


def _uncovered_us(case: Case) -> float:
    """Return the loading of a step that no device works beside, where the host waits for the device elsewhere.

    What the device works meanwhile is waited for later instead, once the loader is faster.
    """
    share, step = case.analysis.step.dataloader_share, case.bounds.step_us
    if share is None or not case.has_gpu or case.bounds.waiting_us < WAITS * step:
        return math.inf
    return share * step


def handover_us(case: Case) -> float:
    """Return what it takes to be handed a batch that a worker has ready, a step; 0 where that cannot be told.

    The shortest wait of the recorded steps, at most `HANDOVER`: more workers do not make it shorter.
    """
    batches = case.analysis.loading
    if batches is None or batches.mode != "workers" or case.has_gpu or not batches.waits:
        return 0.0
    return min(HANDOVER, *(each.wait_us for each in batches.waits), HANDOVER)


def start_pauses(case: Case) -> tuple[Pause, ...]:
    """Return the pauses in which worker processes were started, as far as the trace itself tells.

    Nothing is recorded while processes are forked and import; what follows is the wait of a new iterator for its first
    batch, far longer than the others.
    """
    batches, costs = case.analysis.loading, case.costs
    if costs is None or batches is None or batches.mode != "workers":
        return ()
    found = tuple(each for each in costs.pauses if each.before_loading)
    waits = sorted(each.wait_us for each in batches.waits)
    if not found or not waits:
        return ()
    steps = max(each.steps for each in found)
    usual = waits[max(0, (len(waits) - steps - 1) // 2)]  # of the steps that begin no epoch
    return found if len(waits) > steps and waits[-min(steps, len(waits))] >= FIRST * max(usual, 1.0) else ()


def traced_startup_us(case: Case) -> float:
    """Return what starting workers costs a step by the trace alone: the pause, and the wait beyond the usual one."""
    pauses = start_pauses(case)
    if not pauses or case.analysis.loading is None:
        return 0.0
    waits = sorted(each.wait_us for each in case.analysis.loading.waits)
    steps = max(each.steps for each in pauses)
    usual = median(waits[: len(waits) - steps] or waits)
    waited = sum(max(0.0, wait - usual) for wait in waits[len(waits) - steps :]) / len(waits)
    return sum(each.host_us for each in pauses) + waited


def startup_us(case: Case) -> float:
    """Return what first batches of epochs wait beyond the others, mean over the timed steps; 0 where unknown."""
    waits, starts = case.timed("loading_us"), set(_starts(case))
    later = [wait for step, wait in enumerate(waits) if step not in starts]
    if not starts or not later:
        return 0.0
    usual = median(later)
    return sum(max(0.0, waits[step] - usual) for step in starts if step < len(waits)) / len(waits)


def _starts(case: Case) -> list[int]:
    """Return which timed steps began an epoch; the first step is left out where no later one did, as it may be late."""
    starts = ((case.run or {}).get("timed") or {}).get("epoch_starts") or []
    return [step for step in starts if isinstance(step, int)]
