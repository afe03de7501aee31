"""Our device times against those of TraceLens and HTA, to the digit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peers import FRACTIONAL, INTEGER, as_floats, as_whole_microseconds, chosen, peers_of, trace_of

from tracelock.analysis.gpu import DeviceTime, device_times
from tracelock.analysis.intervals import gaps, intersect, join, length, lengths_within, subtract
from tracelock.analysis.names import is_step, matching
from tracelock.analysis.prepared import prepare
from tracelock.analysis.steps import MARKED
from tracelock.trace.columns import DeviceKind, DeviceRows, Trace

ONE_DEVICE = ("tutorial-h100-transformer", "switch-a100", *FRACTIONAL, "tracelens-mi210-gpu-only")
DLRM = tuple(f"dlrm-rank{rank}" for rank in range(8))


def of_name(shared: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = peers_of(shared)["dlrm-rank0..7" if name.startswith("dlrm") else name]
    return found


@pytest.mark.parametrize("name", [*ONE_DEVICE, "dlrm-rank0"])
def test_tracelens(shared: Path, name: str) -> None:
    expected = {row["type"]: float(row["time ms"]) for row in of_name(shared, name)["tracelens_all_gpu_events"]}
    view = as_floats(trace_of(shared, name))
    (time,) = device_times(view.trace)
    # TraceLens counts sets of memory as computation; and its copies are exposed where nothing else ran.
    sets, copies = only(view.trace, DeviceKind.MEMSET), only(view.trace, DeviceKind.MEMCPY)
    computation = join(time.compute, sets)
    found = {
        "total_time": time.span[1] - time.span[0],
        "busy_time": length(time.busy),
        "idle_time": time.span[1] - time.span[0] - length(time.busy),
        "computation_time": length(computation),
        "total_comm_time": length(time.communication),
        "exposed_comm_time": length(subtract(time.communication, computation)),
        "total_memcpy_time": length(copies),
        "exposed_memcpy_time": length(subtract(subtract(copies, computation), time.communication)),
    }
    for kind, units in found.items():
        assert view.us(units) / 1000 == pytest.approx(expected[kind], abs=1e-12), kind


def only(trace: Trace, kind: DeviceKind) -> Any:
    rows = chosen(trace.device, trace.device.kind == kind)
    return join(*(time.busy for time in device_times(replace(trace, device=rows))))


def as_hta(trace: Trace) -> tuple[DeviceTime, DeviceRows]:
    """Return the device's time of the rows that HTA keeps, and these rows, rounded as it does.

    With two steps or more it drops the last one: host rows from its start on, and device rows launched by them. The
    device's own labels of steps, which begin later, are steps to it.
    """
    windows = prepare(trace).windows
    device = trace.device
    if windows.source == MARKED and len(windows) > 1:
        labels = device.start[matching(trace.texts, device.name, is_step)]
        early = trace.host.start < max([int(windows.host_start[-1]), *labels.tolist()])
        trace = replace(trace, device=chosen(device, np.isin(device.correlation, trace.host.correlation[early])))
    fractional = bool((trace.host.start % 1000).any())
    view = as_whole_microseconds(trace) if fractional else replace_unit(trace)
    (time,) = device_times(view)
    return time, view.device


def turned_round(rows: DeviceRows, time: DeviceTime) -> int:
    """Count the kernels that HTA gives a length of -1: they hold no whole microsecond, and no other covers them."""
    kernels = chosen(rows, (rows.kind == DeviceKind.KERNEL) & (rows.duration < 0))
    alone = lengths_within(time.compute, kernels.start - 1, kernels.start + 1) == 0
    return len(np.unique(kernels.start[alone]))


def replace_unit(trace: Trace) -> Trace:
    """Return the device rows in whole microseconds, which they are."""
    rows = trace.device
    return replace(trace, device=replace(rows, start=rows.start // 1000, duration=rows.duration // 1000))


def hta_rows(shared: Path, name: str) -> dict[str, float]:
    rank = name[-1] if name.startswith("dlrm") else "0"
    (row,) = [row for row in of_name(shared, name)["hta"]["temporal_breakdown"] if row["rank"] == rank]
    return {key.removesuffix("_time(us)"): float(value) for key, value in row.items() if key.endswith("(us)")}


HTA = [name for name in (*INTEGER, *FRACTIONAL, "tracelens-mi210-gpu-only", *DLRM) if "qwen" not in name]  # it crashes


@pytest.mark.parametrize("name", HTA)
def test_hta_temporal_breakdown(shared: Path, name: str) -> None:
    (time, rows), expected = as_hta(trace_of(shared, name)), hta_rows(shared, name)
    computing = length(time.compute) - turned_round(rows, time)
    low, high = time.span
    idle = length(gaps(time.busy, low, high))
    assert high - low == expected["kernel"]
    assert (idle, computing) == (expected["idle"], expected["compute"])
    assert high - low - computing - idle == expected["non_compute"]


@pytest.mark.parametrize("name", ["hta-nccl", "tracelens-mi300-resnet-checkpoint", *DLRM])
def test_hta_communication_hidden_by_computation(shared: Path, name: str) -> None:
    time, _ = as_hta(trace_of(shared, name))
    rank = name[-1] if name.startswith("dlrm") else "0"
    (row,) = [row for row in of_name(shared, name)["hta"]["comm_comp_overlap"] if row["rank"] == rank]
    hidden = length(intersect(time.communication, time.compute)) / length(time.communication)
    assert round(100 * hidden, 2) == float(row["comp_comm_overlap_pctg"])
