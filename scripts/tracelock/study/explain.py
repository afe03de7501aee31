"""What the traces of a case say together: findings, breakdown, device use, operators, memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, fields
from statistics import fmean, median
from typing import TypeVar

import numpy as np

from tracelock.analysis.identities import without_build
from tracelock.analysis.model import Breakdown, Gpu, IdleCauses, Kernel, Memory, Operator
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.study.comparison import Case, DeviceUse, FindingRow, KernelRow, MemoryCurve, OperatorRow, RemedyRow
from tracelock.study.gather import Measured

PartsT = TypeVar("PartsT", Breakdown, IdleCauses)

CURVE_POINTS = 240


def ranked_findings(runs: Sequence[Measured]) -> list[tuple[Finding, int]]:
    """Return each finding of the runs and in how many of them it is found; the one that leads most often first.

    The finding of a code is that of the run with the median step time among the runs that show it, so that title
    and evidence belong together and are typical.
    """
    shown: dict[str, list[tuple[float, Finding]]] = defaultdict(list)
    leads: Counter[str] = Counter()
    for one in runs:
        for rank, finding in enumerate(one.analysis.findings if one.analysis else ()):
            shown[finding.code].append((one.run.timed.duration_us / one.run.timed.steps, finding))
            leads[finding.code] += rank == 0
    ranked = [(_typical(seen), len(seen)) for seen in shown.values()]
    return sorted(ranked, key=lambda entry: (-leads[entry[0].code], -_gain(entry[0]), -entry[1], entry[0].code))


def finding_rows(runs: Sequence[Measured], case: Case) -> Iterator[FindingRow]:
    """Yield the findings of a case, the main one first; shares and gains are medians over the runs that show it."""
    for rank, (finding, times) in enumerate(ranked_findings(runs), start=1):
        same = [found for one in runs if one.analysis for found in one.analysis.findings if found.code == finding.code]
        yield FindingRow(
            environment=case.environment,
            variant=case.variant,
            unlocked=case.unlocked,
            rank=rank,
            code=finding.code,
            title=finding.title,
            severity=finding.severity,
            confidence=finding.confidence,
            runs=times,
            analysed=case.explained.analysed,
            share_of_step=_median([found.share_of_step for found in same]),
            gain_at_most=_median([found.gain_at_most for found in same]),
            evidence=tuple(fact.text for fact in finding.evidence),
            remedies=tuple(RemedyRow(remedy.settings, remedy.expect, remedy.code) for remedy in finding.remedies),
        )


def breakdown(runs: Sequence[Measured]) -> Breakdown | None:
    """Return the mean breakdown of a profiled step over the runs; its parts still sum to the mean step."""
    parts = [one.step.breakdown_us for one in _analyses(runs)]
    return _mean_parts(Breakdown, [part for part in parts if part is not None])


def device_use(runs: Sequence[Measured]) -> DeviceUse | None:
    """Return how busy the accelerators were, None where the traces hold none."""
    gpus = [gpu for one in _analyses(runs) for gpu in one.gpus if gpu.span_us > 0]
    if not gpus:
        return None
    causes = [part for gpu in gpus if (part := _idle_shares(gpu)) is not None]
    return DeviceUse(
        count=len({gpu.id for gpu in gpus}),
        utilization=fmean(gpu.busy_us / gpu.span_us for gpu in gpus),
        idle_causes=_mean_parts(IdleCauses, causes) if len(causes) == len(gpus) else None,
    )


def operator_rows(runs: Sequence[Measured], case: Case) -> Iterator[OperatorRow]:
    """Yield the operators of a case, per step, by their own time (on the device where there is one)."""
    seen: dict[str, list[tuple[Operator, int]]] = defaultdict(list)
    for one in _analyses(runs):
        for operator in one.operators:
            if one.step.count:
                seen[operator.name].append((operator, one.step.count))
    rows = [_operator_row(case, name, calls) for name, calls in seen.items()]
    yield from sorted(rows, key=lambda row: (-(row.self_device_us or 0.0), -row.self_cpu_us, row.name))


def kernel_rows(runs: Sequence[Measured], case: Case) -> Iterator[KernelRow]:
    """Yield the kernels of a case, per step, those that take most time first."""
    seen: dict[str, list[tuple[Kernel, int]]] = defaultdict(list)
    for one in _analyses(runs):
        for kernel in one.kernels:
            if one.step.count:
                seen[kernel.name].append((kernel, one.step.count))
    rows = [_kernel_row(case, name, calls) for name, calls in seen.items()]
    yield from sorted(rows, key=lambda row: (-row.time_us, row.name))


def memory_curves(runs: Sequence[Measured]) -> tuple[MemoryCurve, ...]:
    """Return the memory curves of the first run that has any, one a device, of at most `CURVE_POINTS` points."""
    for one in runs:
        if one.analysis and (parts := [part for part in one.analysis.memory if part.curve]):
            return tuple(_curve(one.run.repeat, part, one.analysis.step.mean_us) for part in parts)
    return ()


def thin_out(values: Sequence[float], most: int) -> list[int]:
    """Return increasing indices of at most `most` values: first, last, and the extremes of each stretch between."""
    if len(values) <= most:
        return list(range(len(values)))
    array = np.asarray(values, dtype=np.float64)
    stretches = np.array_split(np.arange(len(array)), (most - 2) // 2)
    kept = {0, len(array) - 1}
    for stretch in stretches:
        kept |= {int(stretch[array[stretch].argmin()]), int(stretch[array[stretch].argmax()])}
    return sorted(kept)


def _analyses(runs: Sequence[Measured]) -> list[Diagnosed]:
    return [one.analysis for one in runs if one.analysis]


def _typical(seen: Sequence[tuple[float, Finding]]) -> Finding:
    ordered = sorted(seen, key=lambda entry: entry[0])
    return ordered[(len(ordered) - 1) // 2][1]


def _gain(finding: Finding) -> float:
    return -1.0 if finding.gain_at_most is None else finding.gain_at_most


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _mean_parts(kind: type[PartsT], parts: Sequence[PartsT]) -> PartsT | None:
    if not parts:
        return None
    return kind(*(fmean(values) for values in zip(*(astuple(part) for part in parts), strict=True)))


def _idle_shares(gpu: Gpu) -> IdleCauses | None:
    causes = gpu.idle_causes_us
    return causes and IdleCauses(*(getattr(causes, part.name) / gpu.span_us for part in fields(causes)))


def _operator_row(case: Case, name: str, calls: Sequence[tuple[Operator, int]]) -> OperatorRow:
    def per_step(figure: Callable[[Operator], float | None]) -> float | None:
        values = [(figure(operator), steps) for operator, steps in calls]
        return _median([None if value is None else value / steps for value, steps in values])

    return OperatorRow(
        environment=case.environment,
        variant=case.variant,
        unlocked=case.unlocked,
        name=name,
        runs=len(calls),
        calls_per_step=_median([operator.calls_per_step for operator, _ in calls]),
        self_cpu_us=per_step(lambda operator: operator.self_cpu_us) or 0.0,
        total_cpu_us=per_step(lambda operator: operator.total_cpu_us) or 0.0,
        self_device_us=per_step(lambda operator: operator.self_device_us),
        total_device_us=per_step(lambda operator: operator.total_device_us),
    )


def _kernel_row(case: Case, name: str, calls: Sequence[tuple[Kernel, int]]) -> KernelRow:
    return KernelRow(
        environment=case.environment,
        variant=case.variant,
        name=name,
        identity=without_build(name) or name,
        runs=len(calls),
        calls_per_step=median(kernel.calls / steps for kernel, steps in calls),
        time_us=median(kernel.total_us / steps for kernel, steps in calls),
        tensor_cores=calls[0][0].tensor_cores,
    )


def _curve(repeat: int, memory: Memory, step_us: float | None) -> MemoryCurve:
    kept = [memory.curve[index] for index in thin_out([p.allocated_bytes for p in memory.curve], CURVE_POINTS)]
    start = memory.curve[0].time_us
    return MemoryCurve(
        device=memory.device,
        repeat=repeat,
        time_us=tuple(point.time_us - start for point in kept),
        allocated_bytes=tuple(point.allocated_bytes for point in kept),
        step_us=step_us,
        growth_bytes_per_step=memory.growth_bytes_per_step,
    )
