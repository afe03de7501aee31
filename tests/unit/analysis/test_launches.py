"""Launches: delay, queue and short kernels, against figures by hand, HTA's and slow twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import kernel, launch, make_trace, memcpy, runtime
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.launches import launches, longest_queue
from tracelock.analysis.links import link
from tracelock.analysis.nesting import nest
from tracelock.analysis.sections import Launches, Queue
from tracelock.trace import Trace, read_trace


def joined(trace: Trace) -> Any:
    """Return the launch of each device row by the slow way."""
    calls: dict[int, int] = {}
    for row, (correlation, kind) in enumerate(zip(trace.host.correlation, trace.host.kind, strict=True)):
        if kind in (1, 2) and correlation > 0:
            calls.setdefault(int(correlation), row)
    return np.array([calls.get(int(each), -1) for each in trace.device.correlation], dtype=np.int32)


def analyse(trace: Trace) -> tuple[Launches, ...]:
    return launches(trace, joined(trace), np.ones(len(trace.device), np.bool_))


def test_figures_by_hand() -> None:
    trace = make_trace(
        host=[
            launch(0, 4_000, correlation=1),
            launch(5_000, 5_000, correlation=2),
            launch(20_000, 60_000, correlation=3),
            runtime("cudaGraphLaunch", 300_000, 9_000, correlation=4),
        ],
        device=[
            kernel("a", 6_000, 30_000, correlation=1),  # 2 µs after its call; stream was free
            kernel("b", 36_000, 4_000, correlation=2),  # 26 µs after its call, shorter than it
            memcpy("HtoD", 280_000, 15_000, correlation=3, stream=9),  # 200 µs after its call
            kernel("g", 310_000, 1_000, correlation=4),
            kernel("h", 311_000, 1_000, correlation=4),
            kernel("unknown", 400_000, 1_000),
        ],
    )
    (found,) = analyse(trace)
    assert found == Launches(
        device=0,
        linked=5,
        unlinked=1,
        graph_rows=2,
        call_us=23.0,
        delay_mean_us=pytest.approx((2 + 26 + 200) / 3),
        delay_median_us=26.0,
        delay_p95_us=pytest.approx(26 + 0.9 * (200 - 26)),
        delay_max_us=200.0,
        free_start_us=pytest.approx((2 + 200) / 2),
        short=2,  # b and the copy
        tiny=4,
        slow_calls=1,
        slow_starts=1,
        queues=(Queue(7, 2, pytest.approx((6 + 31) / 36)), Queue(9, 1, 1.0)),
    )


def test_devices_and_streams_are_told_apart() -> None:
    trace = make_trace(
        host=[launch(0, 1, correlation=1), launch(2, 1, correlation=2), launch(4, 1, correlation=3)],
        device=[
            kernel("a", 10, 5, correlation=1, device=0, stream=-1, tid="queue 1"),
            kernel("b", 10, 5, correlation=2, device=0, stream=-1, tid="queue 2"),
            kernel("c", 10, 5, correlation=3, device=1, stream=0),
        ],
    )
    first, second = analyse(trace)
    assert [each.device for each in (first, second)] == [0, 1]
    assert [(each.stream, each.longest) for each in first.queues] == [(-1, 1), (-1, 1)]
    assert [(each.stream, each.longest) for each in second.queues] == [(0, 1)]


def test_without_launches_nothing_is_claimed() -> None:
    (found,) = analyse(make_trace(device=[kernel("a", 10, 5)]))
    assert (found.linked, found.unlinked, found.queues) == (0, 1, ())
    assert found.call_us is found.delay_mean_us is found.free_start_us is None


def test_a_clock_of_the_device_that_is_behind_makes_no_negative_delay() -> None:
    (found,) = analyse(make_trace(host=[launch(10, 5, correlation=1)], device=[kernel("a", 8, 5, correlation=1)]))
    assert (found.delay_mean_us, found.queues) == (0.0, (Queue(7, 1, None),))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=20))
def test_the_longest_queue_is_that_of_a_slow_twin(rows: list[tuple[int, int]]) -> None:
    called = [start for start, _ in rows]
    began = [start + wait for start, wait in rows]
    # at the moment of each call: all calls made by then, less all rows that began strictly before
    expected = max((sum(c <= now for c in called) - sum(b < now for b in began) for now in called), default=0)
    assert longest_queue(np.array(called, dtype=np.int64), np.array(began, dtype=np.int64)) == expected


CHECKED = [
    "dlrm-rank0..7", "hta-nccl", "hta-ns-resolution", "kineto-resnet50-workers0", "kineto-resnet50-workers4",
    "switch-a100", "tracelens-h100-qwen", "tracelens-mi210-gpu-only", "tracelens-vllm-hipgraph",
    "tutorial-h100-transformer",
]  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_queues_are_those_of_hta(shared: Path, name: str) -> None:
    """HTA leaves out the last step; with the same rows the longest queue of each stream is the same."""
    peers = json.loads((shared / "reference" / "peers.json").read_text())[name]["hta"]["queue_length_summary"]
    expected = [int(float(row["queue_length"])) for row in peers if row["queue_length"] not in ("max", "")]
    names = [f"dlrm-rank{rank}" for rank in range(8)] if name == "dlrm-rank0..7" else [name]
    found = []
    for each in names:
        trace = read_trace(shared / "traces" / f"{each}.json.gz")
        launch = link(trace, nest(trace.host)).launch
        steps = [row for row, text in enumerate(trace.host.name) if trace.texts[text].startswith("ProfilerStep#")]
        if len(steps) >= 2:
            launch = np.where(trace.host.start[launch] < trace.host.start[steps[-1]], launch, -1)
        (device,) = launches(trace, launch, np.ones(len(trace.device), np.bool_))
        found += [queue.longest for queue in device.queues]
    assert found == expected


def test_the_queue_of_rocm_is_that_of_hta(shared: Path) -> None:
    """HTA kept all steps of this trace, and its list of launches lacks hipExtLaunchKernel, which stream 4 uses."""
    name = "tracelens-mi300-resnet-checkpoint"
    peers = json.loads((shared / "reference" / "peers.json").read_text())[name]["hta"]["queue_length_summary"]
    trace = read_trace(shared / "traces" / f"{name}.json.gz")
    launch = link(trace, nest(trace.host)).launch
    (device,) = launches(trace, launch, np.ones(len(trace.device), np.bool_))
    assert device.linked == 2685
    assert {queue.stream: queue.longest for queue in device.queues}[0] == int(float(peers[-1]["queue_length"])) == 1840


calls = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 30), st.integers(0, 60), st.integers(0, 40), st.integers(7, 8)),
    max_size=12,
)


@given(calls)
def test_delays_are_those_of_a_slow_twin(rows: list[tuple[int, int, int, int, int]]) -> None:
    """Rows of (call, its length, wait after it began, length of the work, stream), in microseconds."""
    host = [launch(1000 * call, 1000 * length, correlation=n + 1) for n, (call, length, *_) in enumerate(rows)]
    device = [
        kernel("k", 1000 * (call + wait), 1000 * work, correlation=n + 1, stream=stream)
        for n, (call, _, wait, work, stream) in enumerate(rows)
    ]
    found = analyse(make_trace(host=host, device=device))
    if not rows:
        assert found == ()
        return
    delays = [max(0, wait - length) for _, length, wait, _, _ in rows]
    assert found[0].delay_mean_us == pytest.approx(np.mean(delays))
    assert found[0].delay_median_us == pytest.approx(np.median(delays))
    assert found[0].delay_max_us == max(delays)
    assert found[0].short == sum(work < length for _, length, _, work, _ in rows)
    assert found[0].tiny == sum(work < 10 for *_, work, _ in rows)
    for queue in found[0].queues:
        mine = [(call, call + wait) for call, _, wait, _, stream in rows if stream == queue.stream]
        span = max(began for _, began in mine) - min(call for call, _ in mine)
        waiting = sum(began - call for call, began in mine)
        assert queue.mean == (pytest.approx(waiting / span) if span else None)
    assert len(found[0].queues) == len({row[-1] for row in rows})


def test_real_traces_keep_the_laws_of_launches(shared: Path) -> None:
    for path in sorted((shared / "traces").glob("*.json.gz")):
        trace = read_trace(path)
        launch_of = link(trace, nest(trace.host)).launch
        work = trace.device.kind <= 2
        for found in launches(trace, launch_of, np.ones(len(trace.device), np.bool_)):
            mine = work & (trace.device.device == found.device)
            assert found.linked + found.unlinked == mine.sum()
            assert found.linked == (mine & (launch_of >= 0)).sum()
            assert 0 <= found.graph_rows <= found.linked
            assert max(found.short, found.slow_calls, found.slow_starts) <= found.linked - found.graph_rows
            for queue in found.queues:
                assert 0 <= (queue.mean or 0) <= queue.longest
