"""All figures together: laws that hold on every trace, what is unknown, and damage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import annotation, kernel, launch, loading, make_trace, memcpy, op, runtime, step
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import in_chunks_of, traces

import tracelock
from tracelock.analysis import Analysis, analyze
from tracelock.analysis.document import decode, encode
from tracelock.trace import read_trace
from tracelock.trace.columns import Device, Trace

PARTS_OF_A_STEP = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_op", "other")
CAUSES = ("dataloader", "host", "synchronization", "launch", "communication", "unattributed")


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def check_laws(found: Analysis) -> None:
    """Parts sum to the whole, shares lie between 0 and 1, nothing is negative."""
    for step_ in found.steps:
        parts = [ns(getattr(step_.breakdown_us, part)) for part in PARTS_OF_A_STEP]
        assert sum(parts) == ns(step_.duration_us)
        assert min(parts) >= 0
    for gpu in found.gpus:
        assert ns(gpu.busy_us) + ns(gpu.idle_us) == ns(gpu.span_us)
        assert gpu.idle_causes_us is not None
        causes = [ns(getattr(gpu.idle_causes_us, cause)) for cause in CAUSES]
        assert sum(causes) == ns(gpu.idle_us)
        assert min(causes) >= 0
        assert sum(ns(each.time_us) for each in gpu.host_idle) <= ns(gpu.idle_causes_us.host)
        assert ns(gpu.compute_us) + ns(gpu.exposed_communication_us) <= ns(gpu.busy_us) <= ns(gpu.span_us)
        assert gpu.exposed_communication_us <= gpu.communication_us
        for share in (gpu.utilization, gpu.sm_efficiency, gpu.linked_share, gpu.tensor_core_share):
            assert share is None or 0 <= share <= 1
    assert sum(each.complete for each in found.steps) == found.step.count
    assert found.step.dataloader_share is None or 0 <= found.step.dataloader_share <= 1
    for row in (*found.operators, *found.labels, *found.runtime, *found.operators_by_shape, *found.operators_by_stack):
        assert row.self_cpu_us >= 0
        assert (row.self_device_us or 0) <= (row.total_device_us or 0)


@given(traces())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_laws_on_made_up_traces(trace: Trace) -> None:
    check_laws(analyze(trace))


def test_laws_on_real_traces(shared: Path) -> None:
    for path in sorted((shared / "traces").glob("*.json.gz")):
        found = analyze(read_trace(path))
        check_laws(found)
        assert decode(encode(found), Analysis) == found


@given(traces(quality="partial"))
def test_laws_on_cut_traces(trace: Trace) -> None:
    found = analyze(trace)
    check_laws(found)
    if not found.step.count:
        assert found.step.mean_us is None
        assert "step.mean_us" in found.unknown
        assert found.gpus == ()


@given(traces(), st.integers(1, 10**12))
def test_figures_do_not_depend_on_the_clock(trace: Trace, later: int) -> None:
    moved = analyze(shifted(trace, later))
    assert moved == analyze(trace)


def shifted(trace: Trace, later: int) -> Trace:
    """The same trace on a clock that is ahead."""
    host, device = trace.host, trace.device
    return replace(
        trace, host=replace(host, start=host.start + later), device=replace(device, start=device.start + later)
    )


@given(traces(), st.integers(1, 5))
def test_figures_do_not_depend_on_how_many_rows_are_copied_at_once(trace: Trace, chunk: int) -> None:
    with in_chunks_of(chunk):
        found = analyze(trace)
    assert found == analyze(trace)


def test_the_package_offers_reading_and_analysing() -> None:
    assert tracelock.analyze is analyze
    assert tracelock.read_trace is read_trace
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tracelock.nothing


def test_a_whole_document_by_hand() -> None:
    host = [
        step(7, 0, 100_000),
        loading(0, 30_000),
        op("aten::mm", 40_000, 20_000),
        launch(50_000, 5_000, 1),
        annotation("Optimizer.step#SGD.step", 70_000, 20_000),
        runtime("cudaMemcpyAsync", 75_000, 5_000, correlation=2),
    ]
    device = [
        kernel("volta_sgemm_128x32_nt", 56_000, 10_000, correlation=1),
        memcpy("HtoD", 90_000, 40_000, correlation=2, bytes=80_000),
    ]
    found = analyze(make_trace(host, device, rank=3, torch_version="2.4.0", devices=(Device(0, "A100"),)))
    (only,) = found.steps
    assert (only.name, only.start_us, only.duration_us, only.complete) == ("ProfilerStep#7", 0, 130, True)
    assert only.exposed_communication_us == 0
    assert (found.step.count, found.step.mean_us, found.step.median_us) == (1, 130, 130)
    assert found.step.dataloader_share == 30 / 130
    (gpu,) = found.gpus
    assert (gpu.span_us, gpu.busy_us, gpu.idle_us, gpu.window_us) == (74, 50, 24, 130)
    assert (gpu.compute_us, gpu.memory_us, gpu.communication_us, gpu.linked_share) == (10, 40, 0, 1)
    assert gpu.utilization == 10 / 130
    assert gpu.idle_causes_us is not None
    # The gap from 66 to 90 ends with the copy, whose call began at 75.
    assert (gpu.idle_causes_us.launch, gpu.idle_causes_us.host) == (15, 9)
    assert [(each.name, each.time_us) for each in gpu.host_idle] == [
        ("Optimizer.step#SGD.step", 5),
        ("Python outside of operators", 4),
    ]
    assert (found.trace.rank, found.trace.torch_version, found.trace.devices[0].name) == (3, "2.4.0", "A100")
    assert set(found.unknown) == {
        "gpus[0].sm_efficiency",
        "gpus[0].occupancy_pct",
        "operators[].allocated_bytes",
        "operators_by_shape",
        "operators_by_stack",
    }


def test_the_host_alone() -> None:
    found = analyze(make_trace([step(0, 0, 50), step(1, 50, 50), loading(0, 10), op("aten::mm", 60, 30)]))
    assert found.gpus == ()
    assert found.step.breakdown_us is not None
    assert (found.step.count, found.step.breakdown_us.dataloader, found.step.breakdown_us.cpu_op) == (2, 0.005, 0.015)
    assert found.steps[0].exposed_communication_us is None
    assert found.threads is not None


def test_the_device_alone() -> None:
    found = analyze(make_trace([], [kernel("gemm", 0, 10), kernel("gemm", 30, 10)]))
    (gpu,) = found.gpus
    assert (gpu.busy_us, gpu.idle_us) == (0.02, 0.02)
    assert gpu.idle_causes_us is not None
    assert gpu.idle_causes_us.unattributed == 0.02
    assert found.operators == ()
    assert found.step.source == "whole trace"


def test_nothing_at_all() -> None:
    found = analyze(make_trace())
    assert (found.steps, found.gpus, found.operators, found.kernels) == ((), (), (), ())
    assert found.step.mean_us is None
    assert found.unknown["step.mean_us"] == "the trace is empty"


def test_an_incomplete_step_is_listed_and_left_out_of_the_figures() -> None:
    host = [step(0, 0, 100), step(1, 100, 100), launch(10, 1, 1), launch(20, 1, 2)]
    found = analyze(make_trace(host, [kernel("k", 50, 5, correlation=1), kernel("k", 60, 5, correlation=2)]))
    assert [each.complete for each in found.steps] == [True, False]
    assert (found.step.count, found.step.incomplete, found.step.mean_us) == (1, 1, 0.1)
    assert found.gpus[0].window_us == 0.1


def cut(lost: bool) -> Trace:
    """Two steps of which the second has lost its device rows, or both have."""
    host = [step(0, 0, 100), step(1, 100, 100)]
    host += [op("a", at, 30) for at in (0, 100)] + [launch(10, 1, 1), launch(110, 1, 2)]
    device = [] if lost else [kernel("k", 50, 5, correlation=1)]
    return make_trace(host, device, quality="partial", devices=(Device(0, "A100"),))


def test_tables_of_a_cut_file_cover_its_complete_steps() -> None:
    found = analyze(cut(lost=False))
    assert [(row.name, row.calls) for row in found.operators] == [("a", 1)]
    assert (found.step.count, found.step.incomplete, found.step.mean_us) == (1, 1, 0.1)
    assert found.unknown["operators"].endswith("sums over its complete steps")


def test_a_file_that_was_cut_before_its_device_rows_says_so() -> None:
    found = analyze(cut(lost=True))
    assert found.step.mean_us is None
    assert found.unknown["step.mean_us"] == "the file was cut, and no step of it is whole"
    assert found.unknown["gpus"] == "the file was cut before its device rows"
    assert [row.calls for row in found.operators] == [2]


def test_a_cut_file_without_steps_refuses_figures_of_the_run() -> None:
    found = analyze(make_trace([op("a", 0, 10)], [kernel("k", 5, 20)], quality="partial"))
    assert (found.step.mean_us, found.gpus) == (None, ())
    assert [each.complete for each in found.steps] == [False]
    assert found.unknown["operators"].endswith("sums over what could be read")
