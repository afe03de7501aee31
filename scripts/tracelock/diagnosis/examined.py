"""What a diagnosis looked at: which causes it could rule out, and which it could not look for, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tracelock.diagnosis.case import Case
from tracelock.diagnosis.model import NotExamined
from tracelock.diagnosis.rule import all_rules
from tracelock.diagnosis.trust import withheld

NO_STEPS = "the trace marks no complete step: call prof.step() once an iteration"
NO_DEVICE = "the trace holds no work of a device"
ON_DEVICE = "the trace holds work of a device, beside which the host's own work hides"
NO_RUN = "no run.json beside the trace: record with tracelock study run"
NO_SAMPLES = "no samples of the device beside the trace: record with tracelock study run"
NO_MEMORY = "the trace has no memory records: profile_memory=True"
NO_SHAPES = "the trace has no input shapes and types: record_shapes=True"
NO_LOADER = "the trace has no rows of a DataLoader"
ONE_RANK = "one rank alone: give the traces of all ranks"
NO_COLLECTIVES = "the trace holds no collectives"
NO_COSTS = "the trace has no complete window"


def _steps(case: Case) -> str | None:
    return None if case.steps else NO_STEPS


def _device(case: Case) -> str | None:
    return None if case.has_gpu else NO_DEVICE


def _device_steps(case: Case) -> str | None:
    return _device(case) or _steps(case)


def _host_steps(case: Case) -> str | None:
    return ON_DEVICE if case.has_gpu else None if case.analysis.work else NO_STEPS


def _worked(case: Case) -> str | None:
    return None if case.analysis.work else NO_STEPS


def _shapes(case: Case) -> str | None:
    work = case.analysis.work
    return _worked(case) or (NO_SHAPES if work is None or work.double_us is None else None)


def _loader(case: Case) -> str | None:
    return None if case.analysis.loading or case.timed("loading_us") else NO_LOADER


def _memory(case: Case) -> str | None:
    return NO_MEMORY if not case.analysis.memory else _steps(case)


def _run(case: Case) -> str | None:
    return None if case.run else NO_RUN


def _samples(case: Case) -> str | None:
    return None if case.samples else NO_SAMPLES


def _ranks(case: Case) -> str | None:
    return None if case.ranks else ONE_RANK


def _collectives(case: Case) -> str | None:
    return None if case.analysis.collectives else NO_COLLECTIVES


def _costs(case: Case) -> str | None:
    return None if case.costs else NO_COSTS


# What keeps each rule from looking; a rule that is not here needs costs alone.
LACKS: Final[dict[str, Callable[[Case], str | None]]] = {
    "anomaly-detection": _worked,
    "blocking-copies": _device,
    "communication-exposed": _collectives,
    "copies-not-overlapped": _device,
    "dataloader-bound": _loader,
    "dominant-operator": _steps,
    "few-threads": _run,
    "frequent-operator": _steps,
    "host-stalls": _device_steps,
    "late-host": _ranks,
    "launch-bound": _device_steps,
    "matmul-precision": _device,
    "memory-growth": _memory,
    "memory-layout": _device,
    "memory-pressure": _device_steps,
    "memory-sawtooth": _memory,
    "needless-copies": _worked,
    "optimizer-bound": _host_steps,
    "oversubscription": _run,
    "pageable-copies": _device,
    "python-time": _host_steps,
    "rank-imbalance": _ranks,
    "slow-collate": _loader,
    "slow-device": _ranks,
    "step-gaps": _steps,
    "straggling-rank": _ranks,
    "synchronization": _device,
    "throttling": _samples,
    "unused-work": _worked,
    "worker-startup": _loader,
    "wrong-dtype": _shapes,
}


def not_examined(case: Case) -> tuple[NotExamined, ...]:
    """Return the causes that could not be looked for, each with the reason; by code."""
    why = withheld(case)
    if why is not None:
        return tuple(NotExamined(rule.code, why) for rule in all_rules())
    found = ((rule.code, LACKS.get(rule.code, _costs)(case)) for rule in all_rules())
    return tuple(NotExamined(code, lack) for code, lack in found if lack)


def ruled_out(case: Case, named: frozenset[str]) -> tuple[str, ...]:
    """Return the codes of the causes that were looked for and not found.

    Parameters
    ----------
    named
        The codes of the findings.
    """
    unseen = {each.code for each in not_examined(case)}
    return tuple(rule.code for rule in all_rules() if rule.code not in unseen | named)
