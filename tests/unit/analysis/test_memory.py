"""Memory: curve, peak, growth, sawtooth, owners, against figures by hand, peers' figures and slow twins."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import MemoryEvent, annotation, make_trace, op, runtime, step
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tracelock.analysis.growth import slope, student_t_975
from tracelock.analysis.levels import device_levels
from tracelock.analysis.links import link
from tracelock.analysis.memory import CURVE_BUCKETS, memory, thin
from tracelock.analysis.nesting import nest
from tracelock.analysis.owners import allocated_by_row, innermost
from tracelock.analysis.sections import Memory, MemoryOwner, MemoryPoint
from tracelock.analysis.selection import take
from tracelock.analysis.steps import find_windows
from tracelock.trace import Trace, read_trace
from tracelock.trace.columns import Device, HostKind

CUDA = {"device_type": 1, "device": 0}


def analyse(trace: Trace) -> tuple[tuple[Memory, ...], dict[str, str]]:
    tree = nest(trace.host)
    return memory(trace, tree, find_windows(trace, link(trace, tree)), origin=0)


def leaky() -> Trace:
    """Three steps of 100 ns: each allocates 64 and 10 bytes, frees the 64, and keeps the 10."""
    events, level = [MemoryEvent(5, 1000, 1000, 4096, 1, **CUDA)], 1000
    for number in range(3):
        start = 100 + 100 * number
        for time, size, address in ((10, 64, 7), (20, 10, 100 + number), (30, -64, 7)):
            level += size
            events.append(MemoryEvent(start + time, size, level, 4096 + level, address, **CUDA))
    steps = [step(number, 100 + 100 * number, 100) for number in range(3)]
    ops = [op("aten::mm", 100 * number + 105, 10) for number in range(3)]
    keep = [op("mine::keep", 100 * number + 115, 10) for number in range(3)]
    return make_trace(
        host=[*steps, *ops, *keep, runtime("cudaMalloc", 112, 3, correlation=1), runtime("cudaFree", 90, 3)],
        memory=events,
        devices=(Device(0, "GPU", {"totalGlobalMem": 8192}),),
    )


def test_figures_by_hand() -> None:
    (found,), unknown = analyse(leaky())
    assert unknown == {}
    assert found.device == "cuda:0"
    assert found.peak_allocated_bytes == 1000 + 20 + 64 + 10
    assert found.peak_reserved_bytes == 4096 + 1094
    assert found.step_levels == (1000, 1010, 1020, 1030)
    assert found.growth_bytes_per_step == pytest.approx(10)
    assert found.growth_interval == pytest.approx((10, 10))
    assert found.capacity_bytes == 8192
    assert found.curve[0] == MemoryPoint(0.005, 1000, 4096)
    assert len(found.curve) == 10
    assert found.allocator_calls_per_step == pytest.approx(1 / 3)  # the cudaFree lies before the steps
    assert found.allocator_us_per_step == pytest.approx(0.001)


def test_a_leak_has_an_owner_that_keeps_memory_of_every_step() -> None:
    (found,), _ = analyse(leaky())
    assert found.owners == (
        MemoryOwner("", 1, 1000, 0, 0),
        MemoryOwner("aten::mm", 3, 192, 0, 0),
        MemoryOwner("mine::keep", 3, 30, 30, 3),
    )


def test_what_allocates_for_others_names_for_whom() -> None:
    host = [
        op("aten::to", 0, 100),
        op("aten::_to_copy", 10, 80),
        op("aten::empty_strided", 20, 50),
        op("aten::empty", 30, 10),  # allocates inside of another that does so
        op("aten::empty", 200, 50),  # for nobody
        op("aten::mm", 300, 50),  # for itself
    ]
    events = [MemoryEvent(time, size, size, 0, 1) for time, size in ((35, 40), (60, 20), (210, 10), (310, 5))]
    (found,), _ = analyse(make_trace(host=host, memory=events))
    assert [(owner.name, owner.caller, owner.allocated_bytes) for owner in found.owners] == [
        ("aten::empty", "aten::_to_copy", 40),
        ("aten::empty_strided", "aten::_to_copy", 20),
        ("aten::empty", None, 10),
        ("aten::mm", None, 5),
    ]


def test_sawtooth_by_hand() -> None:
    (found,), _ = analyse(leaky())
    assert found.sawtooth is not None
    assert found.sawtooth.allocations_per_step == 2
    assert found.sawtooth.small_allocations_per_step == 2
    assert found.sawtooth.teeth_per_step == 1
    assert found.sawtooth.mean_tooth_bytes == 10  # up 10, down 64: the tooth is as high as its lower side
    assert found.sawtooth.hills == pytest.approx((64 + 10 + 64) / (2 * 74))


def test_a_loop_of_small_allocations_has_many_hills() -> None:
    events = [MemoryEvent(10 + n, 8 if n % 2 == 0 else -8, 8 * (1 - n % 2), 0, 1, **CUDA) for n in range(40)]
    (found,), _ = analyse(make_trace(host=[step(0, 0, 100)], memory=events))
    assert found.sawtooth is not None
    assert found.sawtooth.teeth_per_step == 20
    assert found.sawtooth.hills == 20


def test_sizes_without_totals_give_growth_and_no_level() -> None:
    events = [MemoryEvent(50 + 100 * n, 7, **CUDA) for n in range(4)]
    trace = make_trace(host=[step(n, 100 * n, 100) for n in range(4)], memory=events)
    (found,), unknown = analyse(trace)
    assert (found.peak_allocated_bytes, found.peak_reserved_bytes, found.curve) == (None, None, ())
    assert found.step_levels == (0, 7, 14, 21, 28)
    assert found.growth_bytes_per_step == pytest.approx(7)
    assert "rose by 28 bytes" in unknown["memory[0].peak_allocated_bytes"]
    assert [owner.kept_bytes for owner in found.owners] == [None]


def test_a_cut_file_tells_no_peak_and_nothing_of_steps_without_records() -> None:
    whole = leaky()
    trace = replace(
        whole,
        host=take(whole.host, whole.host.kind != HostKind.RUNTIME),  # with calls of a device, its rows would be lost
        memory=take(whole.memory, whole.memory.time < 305),  # the records end early in the third step
        facts=replace(whole.facts, quality="partial", devices=()),
    )
    (found,), unknown = analyse(trace)
    assert (found.peak_allocated_bytes, found.peak_reserved_bytes) == (None, None)
    assert "what is left of it reaches 1,084 bytes" in unknown["memory[0].peak_allocated_bytes"]
    assert found.step_levels == (1000, 1010)
    assert {owner.name: owner.allocations for owner in found.owners} == {"aten::mm": 1, "mine::keep": 1}


def test_the_level_before_the_first_record_may_be_the_peak() -> None:
    (found,), _ = analyse(make_trace(memory=[MemoryEvent(5, -100, 900, 2000, 3, **CUDA)]))
    assert found.peak_allocated_bytes == 1000


def test_one_step_or_none_has_no_growth() -> None:
    for steps in ([], [step(0, 0, 50)]):
        (found,), unknown = analyse(make_trace(host=steps, memory=[MemoryEvent(5, 10, 10, 10, 3, **CUDA)]))
        assert found.growth_bytes_per_step is None
        assert "two complete steps" in unknown["memory[0].growth_bytes_per_step"]


def test_devices_are_told_apart() -> None:
    events = [
        MemoryEvent(1, 5, 5, 0, 1),
        MemoryEvent(2, 6, 6, 6, 2, **CUDA),
        MemoryEvent(3, 7, 7, 7, 3, device_type=1, device=1),
        MemoryEvent(4, 8, 8, 8, 4, device_type=6, device=0),
    ]
    found, unknown = analyse(make_trace(memory=events))
    assert [(each.device, each.peak_allocated_bytes) for each in found] == [
        ("cpu", 5),
        ("cuda:0", 6),
        ("cuda:1", 7),
        ("hip:0", 8),
    ]
    assert found[0].peak_reserved_bytes is None
    assert "does not count" in unknown["memory[0].peak_reserved_bytes"]


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 11, 12, 20, 50, 400])
def test_student_t_is_that_of_scipy(freedom: int) -> None:
    assert student_t_975(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=6e-5)


@given(st.lists(st.integers(0, 2**50), min_size=3, max_size=40))
def test_slope_is_that_of_scipy(levels: list[int]) -> None:
    rise, interval = slope(np.array(levels, dtype=np.int64), np.arange(len(levels)))
    expected = stats.linregress(np.arange(len(levels)), np.array(levels) - levels[0])
    scale = max(1.0, float(np.ptp(levels)))
    assert rise == pytest.approx(expected.slope, abs=1e-9 * scale)
    assert interval is not None
    error = expected.stderr if len(set(levels)) > 1 else 0.0  # scipy has none for a level line
    reach = stats.t.ppf(0.975, len(levels) - 2) * error
    assert interval[1] - rise == pytest.approx(reach, rel=1e-3, abs=1e-6 * scale)


def test_steps_that_are_left_out_keep_their_place() -> None:
    rise, interval = slope(np.array([0, 10, 30, 40]), np.array([0, 1, 3, 4]))
    assert rise == pytest.approx(10)
    assert interval == pytest.approx((10, 10))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 2**40)), min_size=1, max_size=300), st.integers(1, 20))
def test_a_thinned_curve_keeps_its_envelope(steps: list[tuple[int, int]], buckets: int) -> None:
    time = np.cumsum([wait for wait, _ in steps]).astype(np.int64)
    level = np.array([value for _, value in steps], dtype=np.int64)
    kept = thin(time, level, buckets)
    assert len(kept) <= max(2 * buckets + 2, 0)
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(time) - 1
    assert (level[kept].max(), level[kept].min()) == (level.max(), level.min())


def test_a_long_curve_is_thinned_to_about_a_thousand_points() -> None:
    values = np.random.default_rng(0).integers(0, 1000, 20_000).cumsum()
    events = [MemoryEvent(n, 0, int(value), 0, 1, **CUDA) for n, value in enumerate(values)]
    (found,), _ = analyse(make_trace(memory=events))
    assert CURVE_BUCKETS <= len(found.curve) <= 2 * CURVE_BUCKETS + 2
    assert max(point.allocated_bytes for point in found.curve) == values.max() == found.peak_allocated_bytes


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(1, 2), st.booleans()), max_size=25)
asked = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 2)), max_size=25)


@given(spans, asked)
def test_the_owner_is_the_innermost_open_operator(rows: list[tuple[int, int, int, bool]], times: Any) -> None:
    """Properly nested rows only: the twin looks at all rows and takes the shortest that is open."""
    host = []
    for number, (start, length, thread, is_operator) in enumerate(rows):
        row = (op if is_operator else annotation)(f"row{number}", start, length, thread=thread)
        crosses = any(
            other.thread == row.thread
            and (other.start < row.start < other.start + other.duration < row.start + row.duration
                 or row.start < other.start < row.start + row.duration < other.start + other.duration
                 or other.start == row.start or other.start + other.duration == row.start + row.duration
                 or other.start + other.duration == row.start or row.start + row.duration == other.start)
            for other in host
        )  # fmt: skip
        if not crosses:
            host.append(row)
    trace = make_trace(host=host, memory=[MemoryEvent(time, 1, thread=thread) for time, thread in times])
    found = innermost(trace, nest(trace.host), trace.memory.time, trace.memory.track)
    for row, time, track in zip(found, trace.memory.time, trace.memory.track, strict=True):
        thread = trace.tracks[track].tid
        around = [
            each for each in host
            if each.name and each.kind == 0 and each.thread == thread
            and each.start <= time <= each.start + each.duration
        ]  # fmt: skip
        expected = min(around, key=lambda each: each.duration).name if around else None
        assert (trace.texts[trace.host.name[row]] if row >= 0 else None) == expected


def test_steps_listed_as_operators_own_nothing() -> None:
    trace = make_trace(host=[op("ProfilerStep#3", 0, 100)], memory=[MemoryEvent(5, 10, 10, 10, 3)])
    (found,), _ = analyse(trace)
    assert [owner.name for owner in found.owners] == [""]


def test_allocation_by_row_adds_up() -> None:
    trace = leaky()
    total = allocated_by_row(trace, nest(trace.host))
    assert total.sum() == 192 + 30
    assert {trace.texts[trace.host.name[row]] for row in np.flatnonzero(total)} == {"aten::mm", "mine::keep"}


PEAKS = ["tracelens-h100-qwen", "tutorial-h100-transformer", "switch-a100"]


@pytest.mark.parametrize("name", PEAKS)
def test_peaks_are_those_of_the_tensorboard_plugin(shared: Path, name: str) -> None:
    peers = json.loads((shared / "reference" / "peers.json").read_text())[name]["tb_plugin"]["peak_memory"]
    found, _ = analyse(read_trace(shared / "traces" / f"{name}.json.gz"))
    assert {each.device: each.peak_allocated_bytes for each in found} == {"cuda:0": peers["1:0"], "cpu": peers["0:-1"]}


def test_real_traces_keep_the_laws_of_memory(shared: Path) -> None:
    """What operators allocated is what was allocated; the curve reaches the peak and never passes it."""
    for path in sorted((shared / "traces").glob("*.json.gz")):
        trace = read_trace(path)
        found, _ = analyse(trace)
        for levels, each in zip(device_levels(trace), found, strict=True):
            assert sum(owner.allocated_bytes for owner in each.owners) == levels.change[levels.change > 0].sum()
            if each.curve:
                highest = max(point.allocated_bytes for point in each.curve)
                assert each.peak_allocated_bytes == max(highest, levels.before)


changes = st.lists(st.tuples(st.integers(0, 99), st.integers(-40, 40).filter(bool)), min_size=1, max_size=25)


@given(changes)
def test_the_sawtooth_is_that_of_a_slow_twin(rows: list[tuple[int, int]]) -> None:
    """Two steps of 50 ns; levels are counted record by record."""
    rows = sorted(rows, key=lambda row: row[0])
    level, events = 5000, []
    for time, change in rows:
        level += change
        events.append(MemoryEvent(time, change, level, 0, 1, **CUDA))
    (found,), _ = analyse(make_trace(host=[step(0, 0, 50), step(1, 50, 50)], memory=events))
    teeth, heights, hills, grown = 0, [], [], 0
    for low in (0, 50):
        mine = [change for time, change in rows if low <= time < low + 50]
        # at the very start of a step its first records have happened already: they are the level it begins with
        held = 5000 + sum(change for time, change in rows if time <= low)
        path = [held]
        for time, change in rows:
            if low < time < low + 50:
                path.append(path[-1] + change)
        if max(path) > min(path):
            moved = sum(abs(after - before) for before, after in itertools.pairwise(path))
            hills.append(moved / (2 * (max(path) - min(path))))
        grown += sum(change > 0 for change in mine)
        for first, second in itertools.pairwise(mine):
            if first > 0 > second:
                teeth += 1
                heights.append(min(first, -second))
    assert found.sawtooth is not None
    assert found.sawtooth.allocations_per_step == grown / 2
    assert found.sawtooth.teeth_per_step == teeth / 2
    assert found.sawtooth.mean_tooth_bytes == (pytest.approx(np.mean(heights)) if heights else None)
    assert found.sawtooth.hills == (pytest.approx(np.mean(hills)) if hills else None)


@given(changes)
def test_levels_are_those_of_a_slow_twin(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    events = [MemoryEvent(time, change, device_type=1, device=0) for time, change in rows]  # sizes alone
    steps = [step(number, 25 * number, 25) for number in range(4)]
    (found,), _ = analyse(make_trace(host=steps, memory=events))
    assert found.step_levels == tuple(
        sum(change for time, change in rows if time <= point) for point in (0, 25, 50, 75, 100)
    )
