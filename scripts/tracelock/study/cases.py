"""From the runs of a variant in one environment to its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

from tracelock.study import explain
from tracelock.study.comparison import Case, Explained, Loading, Metric
from tracelock.study.gather import Gathered, Measured
from tracelock.study.outcome import Environment, RunRow
from tracelock.study.records import PeakMemory, PlannedVariant, RunFile
from tracelock.study.stats import Interval, Sample, generator, median_interval


def make_case(results: Gathered, place: Environment, variant: PlannedVariant, factors: Sequence[str]) -> Case:
    """Return the figures of one variant in one environment; those that its runs do not tell are None."""
    runs = results.of(place.name, variant.id)
    sample = _interval(results, runs, "time per sample")
    profiled = [one.run.profiled for one in runs if one.run.profiled]
    return Case(
        environment=place.name,
        variant=variant.id,
        baseline=variant.id == results.plan.baseline,
        unlocked=place.unlocked,
        settings=variant.settings,
        factors={name: variant.settings.get(name) for name in factors},
        planned=results.planned(place.name, variant.id),
        runs=len(runs),
        step=_interval(results, runs, "step time"),
        median_step_us=_median(_median_step(one.run) for one in runs),
        sample=sample,
        throughput=sample and Interval(1e6 / sample.value, 1e6 / sample.high, 1e6 / sample.low),
        loading=_loading(runs),
        profiled_step_us=_median(fmean(part.step_us) for part in profiled if part.step_us),
        profiler_overhead=_median(part.overhead_ratio for part in profiled),
        peaks=_peaks(runs),
        explained=_explained(runs),
    )


def time_samples(runs: Sequence[Measured], metric: Metric) -> list[Sample] | None:
    """Return the time of each run with the steps behind it, in microseconds; None if a run does not tell it."""
    values = [_time(one.run, metric) for one in runs]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return [Sample(value, one.run.timed.step_us) for value, one in zip(known, runs, strict=True)]


def run_row(measured: Measured, place: Environment, case: Case) -> RunRow:
    """Return the row of one run of a case."""
    run, analysis = measured.run, measured.analysis
    timed, profiled, memory = run.timed, run.profiled, run.memory
    return RunRow(
        environment=run.environment,
        variant=run.variant,
        repeat=run.repeat,
        unlocked=place.unlocked,
        started=run.started,
        host=run.host,
        device=run.device.type if run.device.index is None else f"{run.device.type}:{run.device.index}",
        device_name=run.device.name,
        python=run.python,
        torch=run.torch,
        threads=run.threads if isinstance(run.threads, int) else None,
        steps=timed.steps,
        step_us=timed.duration_us / timed.steps,
        relative=timed.duration_us / timed.steps / case.step.value if case.step else None,
        median_step_us=_median_step(run),
        samples=timed.samples,
        throughput_per_s=timed.throughput_per_s,
        loading_share=loading_share(run),
        profiled_step_us=fmean(profiled.step_us) if profiled and profiled.step_us else None,
        profiler_overhead=profiled.overhead_ratio if profiled else None,
        dataloader_share=analysis.step.dataloader_share if analysis else None,
        peak_rss_bytes=memory.peak_rss_bytes,
        peak_tree_rss_bytes=memory.peak_tree_rss_bytes,
        peak_allocated_bytes=memory.peak_allocated_bytes,
        peak_reserved_bytes=memory.peak_reserved_bytes,
        stopped_by=timed.stopped_by or (profiled.stopped_by if profiled else None),
        trace=profiled.trace if profiled else None,
        trace_bytes=profiled.trace_bytes if profiled else None,
        trace_quality=analysis.trace.quality if analysis else None,
        finding=analysis.findings[0].code if analysis and analysis.findings else None,
        digest=run.digest,
        node=run.node,
        warnings=tuple(str(warning) for warning in run.warnings),
        unknown=run.unknown,
    )


def loading_share(run: RunFile) -> float | None:
    """Return the share of the timed part that was spent waiting in ``next(loader)``."""
    if not run.timed.loading_us:
        return None
    return math.fsum(run.timed.loading_us) / run.timed.duration_us


def _time(run: RunFile, metric: Metric) -> float | None:
    count = run.timed.steps if metric == "step time" else run.timed.samples
    return run.timed.duration_us / count if count else None


def _interval(results: Gathered, runs: Sequence[Measured], metric: Metric) -> Interval | None:
    samples = time_samples(runs, metric)
    if not samples:
        return None
    first = runs[0].run
    # One generator for both metrics: where a step always holds the same samples, their intervals agree exactly.
    return median_interval(samples, generator(results.plan.seed, first.environment, first.variant))


def _median_step(run: RunFile) -> float | None:
    return median(run.timed.step_us) if run.timed.step_us else None


def _loading(runs: Sequence[Measured]) -> Loading:
    timed = [share for one in runs if (share := loading_share(one.run)) is not None]
    traced = _median(one.analysis.step.dataloader_share for one in runs if one.analysis)
    return Loading(_median(timed), min(timed, default=None), max(timed, default=None), traced)


def _peaks(runs: Sequence[Measured]) -> PeakMemory:
    def highest(peak: Callable[[PeakMemory], int | None]) -> int | None:
        return max((value for one in runs if (value := peak(one.run.memory)) is not None), default=None)

    return PeakMemory(
        highest(lambda memory: memory.peak_rss_bytes),
        highest(lambda memory: memory.peak_tree_rss_bytes),
        highest(lambda memory: memory.peak_allocated_bytes),
        highest(lambda memory: memory.peak_reserved_bytes),
    )


def _explained(runs: Sequence[Measured]) -> Explained:
    ranked = explain.ranked_findings(runs)
    main, times = ranked[0] if ranked else (None, 0)
    return Explained(
        analysed=sum(one.analysis is not None for one in runs),
        finding=main.code if main else None,
        title=main.title if main else None,
        finding_runs=times,
        breakdown=explain.breakdown(runs),
        device=explain.device_use(runs),
        memory=explain.memory_curves(runs),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
