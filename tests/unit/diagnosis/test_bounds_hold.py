"""Bounds of profiled steps: what the profiler adds lies anywhere, so that a share of its step is no bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.diagnosis.cases import analysis, breakdown, costs

from tracelock.analysis.costs import Pause, Repetition
from tracelock.analysis.model import Analysis
from tracelock.analysis.sections import Loading, LoadingWait
from tracelock.diagnosis import diagnose

MEASURED = 1 - 7.33 / 10.46  # a loop of small multiplications, switched on and off without the profiler


def on_cpu(step_us: float, events: int = 0, **known: Any) -> Analysis:
    """Return eight steps on the CPU with `events` rows."""
    made = analysis(breakdown(cpu_op=step_us), steps=8, costs=costs(step_us, **known))
    return replace(made, trace=replace(made.trace, events=events))


def test_the_profilers_time_is_assumed_to_lie_elsewhere() -> None:
    pause = Pause("train.py(3): wait", 8, 2_000.0, (), without_worst_us=2_000.0)
    traced = on_cpu(10_000.0, pauses=(pause,))
    (told,) = diagnose(traced, run={"profiled": {"overhead_ratio": 1.25}}).findings
    assert told.gain_at_most == pytest.approx(2_000 / 8_000)
    assert told.gain_estimate == pytest.approx(2_000 / 10_000)


def test_without_a_run_each_row_may_have_cost_a_microsecond() -> None:
    pause = Pause("train.py(3): wait", 8, 2_000.0, (), without_worst_us=2_000.0)
    (told,) = diagnose(on_cpu(10_000.0, events=8 * 4_000, pauses=(pause,))).findings
    assert told.gain_at_most == pytest.approx(2_000 / 6_000)
    most = diagnose(on_cpu(10_000.0, events=8 * 400_000, pauses=(pause,))).findings[0].gain_at_most
    assert most == pytest.approx(2_000 / 5_000)  # never more than half of the step


def test_the_python_of_a_loop_goes_with_its_calls() -> None:
    loop = Repetition("aten::mul", 600.0, 2.4, 1_433.0, 0.0, False, False, (), between_us=446.0)
    (told,) = diagnose(on_cpu(8_636.0, events=8 * 4_564, repetitions=(loop,))).findings
    assert told.gain_at_most is not None
    assert told.gain_estimate == pytest.approx((1_433 + 446) / 8_636)
    assert told.gain_at_most >= 0.217  # of the calls alone


def test_one_slow_batch_is_no_slow_loader() -> None:
    waits = [100.0] * 7 + [9_000.0]
    rows = tuple(LoadingWait(f"ProfilerStep#{number}", 1, wait) for number, wait in enumerate(waits))
    loading = Loading("workers", ("_MultiProcessingDataLoaderIter",), 8, sum(waits), None, rows, (), 0.0)
    traced = on_cpu(10_000.0, loading_us=sum(waits) / 8)
    traced = replace(traced, loading=loading, step=replace(traced.step, dataloader_share=0.12))
    assert [each.code for each in diagnose(traced).findings] == ["no-bottleneck"]


def test_a_loop_recorded_on_a_real_machine_costs_no_more_than_its_bound(shared: object) -> None:
    from pathlib import Path

    from tracelock.analysis.analyze import analyze
    from tracelock.trace import read_trace

    path = Path(str(shared)) / "faults" / "two_loader_gt_ops.off.B.json.gz"
    main = diagnose(analyze(read_trace(path))).findings[0]
    assert main.code == "frequent-operator"
    assert (main.gain_at_most or 0.0) >= MEASURED
