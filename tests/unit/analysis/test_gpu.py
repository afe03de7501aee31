"""Device time against a count of nanoseconds."""

from __future__ import annotations

import math

import pytest
from builders import OnDevice, kernel, make_trace, memcpy, memset
from hypothesis import given
from hypothesis import strategies as st
from strategies import END, traces

from tracelock.analysis.gpu import device_times, occupancy, sm_efficiency, utilization
from tracelock.analysis.intervals import Intervals, length
from tracelock.analysis.names import is_collective_kernel
from tracelock.trace.columns import DeviceKind, Trace

WORK = (DeviceKind.KERNEL, DeviceKind.MEMCPY, DeviceKind.MEMSET)


def rows_at(trace: Trace, device: int, tick: int) -> list[int]:
    """The work of a device at a nanosecond."""
    rows = trace.device
    return [
        row
        for row in range(len(rows))
        if rows.device[row] == device
        and rows.kind[row] in WORK
        and rows.start[row] <= tick < rows.start[row] + rows.duration[row]
    ]


def is_communication(trace: Trace, row: int) -> bool:
    return trace.device.kind[row] == DeviceKind.KERNEL and is_collective_kernel(trace.texts[trace.device.name[row]])


def is_compute(trace: Trace, row: int) -> bool:
    return trace.device.kind[row] == DeviceKind.KERNEL and not is_communication(trace, row)


def test_by_hand() -> None:
    trace = make_trace(
        [],
        [
            kernel("a", 0, 10),
            kernel("b", 5, 10, stream=0),
            kernel("ncclKernel_AllReduce", 12, 8, stream=9),
            memcpy("HtoD", 30, 5),
            memset(33, 7),
            OnDevice("Context Sync", 20, 70, DeviceKind.SYNC),
            OnDevice("ProfilerStep#1", 0, 90, DeviceKind.ANNOTATION),
        ],
    )
    (time,) = device_times(trace)
    assert (length(time.compute), length(time.communication), length(time.memory)) == (15, 8, 10)
    assert (length(time.busy), time.span) == (30, (0, 40))
    assert length(time.exposed_communication) == 5
    assert length(time.within(8, 34).busy) == 16


def test_stream_zero_and_rows_without_stream_are_work() -> None:
    trace = make_trace([], [kernel("a", 0, 10, stream=0), kernel("b", 20, 10, stream=-1), kernel("c", 0, 5, device=3)])
    assert [(time.device, length(time.busy)) for time in device_times(trace)] == [(0, 20), (3, 5)]


def test_no_efficiency_where_no_kernel_tells() -> None:
    trace = make_trace([], [kernel("a", 0, 10)])
    every = trace.device.duration > 0
    assert sm_efficiency(trace.device, every, 0, 10) is None
    assert occupancy(trace.device, every, 0, 10) is None
    assert utilization(device_times(trace)[0], 5, 5) is None


def test_efficiency_by_hand() -> None:
    rows = [
        kernel("a", 0, 10, blocks_per_sm=0.5, occupancy=50),
        kernel("b", 5, 10, blocks_per_sm=0.25, occupancy=100, stream=0),
        kernel("c", 20, 10, blocks_per_sm=40, occupancy=0),
    ]
    trace = make_trace([], rows)
    every = trace.device.duration > 0
    assert sm_efficiency(trace.device, every, 0, 40) == (5 * 0.5 + 5 * 0.75 + 5 * 0.25 + 10) / 40
    assert occupancy(trace.device, every, 0, 40) == (10 * 50 + 10 * 100) / 30
    assert occupancy(trace.device, every, 0, 10) == (10 * 50 + 5 * 100) / 15
    assert utilization(device_times(trace)[0], 0, 40) == 25 / 40


def ticks(held: Intervals) -> set[int]:
    return {tick for low, high in zip(held.start.tolist(), held.end.tolist(), strict=True) for tick in range(low, high)}


@given(traces(), st.integers(0, END), st.integers(0, END))
def test_times_are_those_counted_nanosecond_by_nanosecond(trace: Trace, one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    for time in (every.within(low, high) for every in device_times(trace)):
        rows = {tick: rows_at(trace, time.device, tick) for tick in range(low, high)}
        compute = {tick for tick, held in rows.items() if any(is_compute(trace, row) for row in held)}
        communication = {tick for tick, held in rows.items() if any(is_communication(trace, row) for row in held)}
        assert ticks(time.busy) == {tick for tick, held in rows.items() if held}
        assert ticks(time.compute) == compute
        assert ticks(time.communication) == communication
        assert ticks(time.kernels) == compute | communication
        assert ticks(time.exposed_communication) == communication - compute


@given(traces(), st.integers(0, END), st.integers(1, END))
def test_efficiency_is_that_counted_nanosecond_by_nanosecond(trace: Trace, low: int, size: int) -> None:
    rows, high = trace.device, low + size
    for time in device_times(trace):
        mine = (rows.kind <= DeviceKind.MEMSET) & (rows.device == time.device)
        filled, told, weighed, weight = 0.0, False, 0.0, 0
        for tick in range(low, high):
            held = [row for row in rows_at(trace, time.device, tick) if rows.kind[row] == DeviceKind.KERNEL]
            blocks = [float(rows.blocks_per_sm[row]) for row in held if not math.isnan(rows.blocks_per_sm[row])]
            percents = [float(rows.occupancy[row]) for row in held if not math.isnan(rows.occupancy[row])]
            told |= bool(blocks)
            filled += min(1.0, sum(blocks))
            weighed, weight = weighed + sum(percents), weight + len(percents)
        assert sm_efficiency(rows, mine, low, high) == (pytest.approx(filled / size) if told else None)
        assert occupancy(rows, mine, low, high) == (pytest.approx(weighed / weight) if weight else None)
        used = utilization(time, low, high)
        assert used is not None
        assert 0 <= used <= 1
