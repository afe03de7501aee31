"""The worked example of docs/definitions.md, number by number."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

import pytest
from builders import Host, OnDevice, annotation, kernel, launch, loading, make_trace, memcpy, op, runtime, step

from tracelock.analysis import Analysis, analyze

BACKWARD = 2
Row = TypeVar("Row", Host, OnDevice)


@lru_cache(maxsize=1)
def example() -> Analysis:
    host = [
        step(0, 0, 1000),
        loading(0, 200),
        op("aten::stack", 50, 40),
        op("aten::to", 210, 50),
        runtime("cudaMemcpyAsync", 220, 30, correlation=1),
        op("aten::linear", 300, 100),
        op("aten::addmm", 320, 70),
        launch(340, 10, 2),
        op("MmBackward0", 450, 100, thread=BACKWARD),
        launch(480, 10, 3, thread=BACKWARD),
        annotation("nccl:all_reduce", 560, 20, thread=BACKWARD),
        launch(565, 10, 4, thread=BACKWARD),
        op("aten::item", 600, 350),
        runtime("cudaStreamSynchronize", 620, 320),
        step(1, 1000, 100),
        launch(1010, 10, 5),
    ]
    device = [
        memcpy("HtoD", 240, 60, correlation=1, bytes=600_000),
        kernel("volta_h884gemm", 400, 100, correlation=2, blocks_per_sm=0.5, occupancy=50),
        kernel("volta_sgemm", 520, 180, correlation=3, blocks_per_sm=2, occupancy=25),
        kernel("ncclDevKernel_AllReduce", 650, 400, correlation=4, stream=20, blocks_per_sm=0.1, occupancy=10),
        kernel("elementwise", 1100, 150, correlation=5),
    ]
    return analyze(make_trace([in_microseconds(row) for row in host], [in_microseconds(row) for row in device]))


def in_microseconds(row: Row) -> Row:
    return replace(row, start=row.start * 1000, duration=row.duration * 1000)


def test_steps() -> None:
    found = example()
    spans = [(each.start_us, each.duration_us, each.complete) for each in found.steps]
    assert spans == [(0, 1050, True), (1050, 200, False)]
    assert (found.step.count, found.step.incomplete, found.step.mean_us) == (1, 1, 1050)


def test_breakdown() -> None:
    parts = example().steps[0].breakdown_us
    assert (parts.kernel, parts.memcpy, parts.memset, parts.communication) == (630, 60, 0, 0)
    assert (parts.runtime, parts.dataloader, parts.cpu_op, parts.other) == (30, 200, 120, 10)
    assert example().steps[0].exposed_communication_us == 350
    assert example().step.dataloader_share == 200 / 1050


def test_device() -> None:
    (gpu,) = example().gpus
    assert (gpu.window_us, gpu.span_us, gpu.busy_us, gpu.idle_us) == (1050, 810, 690, 120)
    assert (gpu.compute_us, gpu.communication_us, gpu.memory_us, gpu.exposed_communication_us) == (280, 400, 60, 350)
    assert (gpu.utilization, gpu.linked_share) == (0.6, 1)
    assert gpu.sm_efficiency == pytest.approx((100 * 0.5 + 130 + 50 + 350 * 0.1) / 1050, rel=1e-7)
    assert gpu.occupancy_pct == (100 * 50 + 180 * 25 + 400 * 10) / 680
    assert gpu.tensor_core_share == 100 / 830


def test_idle() -> None:
    (gpu,) = example().gpus
    causes = gpu.idle_causes_us
    assert causes is not None
    assert (causes.launch, causes.host, causes.dataloader, causes.unattributed) == (80, 40, 0, 0)
    assert {each.name: each.time_us for each in gpu.host_idle} == {"aten::linear": 20, "aten::addmm": 20}


def test_operators() -> None:
    rows = {row.name: row for row in (*example().operators, *example().labels)}
    found = {
        name: (row.total_cpu_us, row.self_cpu_us, row.self_device_us, row.total_device_us) for name, row in rows.items()
    }
    assert found["aten::linear"] == (100, 30, 0, 100)
    assert found["aten::addmm"] == (70, 60, 100, 100)
    assert found["nccl:all_reduce"] == (20, 10, 400, 400)


def test_kernels_and_transfers() -> None:
    cores = example().tensor_cores
    assert cores is not None
    assert (cores.used_share, cores.eligible_share, cores.used_share_of_eligible) == (100 / 830, 100 / 830, 1)
    (copy,) = example().transfers
    assert (copy.kind, copy.memory, copy.bytes, copy.total_us) == ("HtoD", "pageable", 600_000, 60)
    assert copy.bandwidth_gb_per_s == 10
