"""The rows of a timeline: packed and read back, merged without a row or a nanosecond lost."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from builders import kernel, launch, make_trace, op, step
from hypothesis import given
from hypothesis import strategies as st
from page_trace import many_rows, page_trace
from strategies import traces

from tracelock.analysis.analyze import analyze
from tracelock.analysis.idle import CAUSES
from tracelock.analysis.prepared import prepare
from tracelock.report.trace import pack
from tracelock.report.trace.lanes import IDLE, Lane, lanes
from tracelock.report.trace.merge import merge
from tracelock.report.trace.timeline import draw, typical_and_slowest
from tracelock.trace import Trace

WIDTH = 9  # columns of a lane


def unpacked(letters: str, sizes: list[int]) -> list[list[int]]:
    """Read columns as the page does, a byte at a time."""
    data, at, columns = zlib.decompress(base64.b64decode(letters)), 0, []
    for size in sizes:
        column = []
        for _ in range(size):
            value, shift = 0, 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            column.append(-((value + 1) // 2) if value % 2 else value // 2)
        columns.append(column)
    assert at == len(data)
    return columns


@given(st.lists(st.integers(-(2**52), 2**52)))
def test_numbers_are_read_back_as_they_were(values: list[int]) -> None:
    data, sizes = pack.columns([np.array(values, np.int64)])
    assert unpacked(pack.letters(data), sizes) == [values]


def _read(trace: Trace, most: int = 10**6) -> tuple[dict[str, Any], list[list[list[int]]]]:
    drawn = draw(prepare(trace), most)
    sizes = [lane["rows"] for lane in drawn.about["lanes"] for _ in range(WIDTH)]
    columns = unpacked(drawn.rows, sizes)
    return drawn.about, [columns[at : at + WIDTH] for at in range(0, len(columns), WIDTH)]


def test_rows_stand_at_their_times_with_their_details() -> None:
    trace = make_trace(
        [step(0, 0, 900), op("aten::mm", 100, 300, shapes="[[2, 2]]"), launch(150, 10, correlation=4)],
        [kernel("gemm", 200, 500, correlation=4)],
    )
    about, columns = _read(trace)
    by_name = {lane["name"]: column for lane, column in zip(about["lanes"], columns, strict=True)}
    start, length, level, _, name, more, held, operator, launched = by_name["stream 7"]
    texts = about["texts"]
    assert (start, length, level, more, held) == ([200], [500], [0], [0], [0])
    assert texts[name[0]] == "gemm"
    assert texts[operator[0]] == "aten::mm"
    assert launched == [51]  # 50 ns after its launch began, and one more to tell it from unknown
    host = by_name["thread 1 (training loop)"]
    assert np.cumsum(host[0]).tolist() == [0, 100, 150]
    assert host[2] == [0, 1, 2]
    assert [texts[place] if place >= 0 else None for place in host[7]] == [None, "[[2, 2]]", None]


def test_idle_time_in_the_timeline_is_that_of_the_analysis() -> None:
    trace = page_trace()
    (gpu,) = analyze(trace).gpus
    (lane,) = [lane for lane in lanes(prepare(trace)) if lane.kind == "idle"]
    assert gpu.idle_causes_us is not None
    for place, cause in enumerate(CAUSES):
        assert int(lane.duration[lane.text == place].sum()) / 1000 == getattr(gpu.idle_causes_us, cause)
    assert (lane.color - IDLE == lane.text).all()


@given(traces())
def test_idle_time_adds_up_on_any_trace(trace: Trace) -> None:
    by_gpu = {f"GPU {gpu.id}" if gpu.id >= 0 else "GPU": gpu.idle_us for gpu in analyze(trace).gpus}
    for lane in lanes(prepare(trace)):
        if lane.kind == "idle":
            assert round(int(lane.duration.sum()) / 1000 - by_gpu[lane.group], 6) == 0
            assert (lane.start[1:] >= lane.start[:-1] + lane.duration[:-1]).all()


@given(traces(), st.integers(1, 40))
def test_merging_loses_no_row_and_no_time(trace: Trace, most: int) -> None:
    every = lanes(prepare(trace))
    merged, resolution = merge(every, most, [])
    assert len(merged) == len(every)
    for lane, found in zip(every, merged, strict=True):
        assert int(found.count.sum()) == len(lane)
        assert int(found.held.sum()) == int(lane.duration.sum())
        assert (found.count[found.lane.duration >= max(resolution * 3, 1)] == 1).all()
        _within(lane, found.lane)
    if sum(map(len, every)) <= most:
        assert resolution == 0


def _within(lane: Lane, shown: Lane) -> None:
    """A block begins with a row of its level, and ends with one."""
    begins = {(level, start) for level, start in zip(lane.level.tolist(), lane.start.tolist(), strict=True)}
    ends = {
        (level, start + length)
        for level, start, length in zip(lane.level.tolist(), lane.start.tolist(), lane.duration.tolist(), strict=True)
    }
    for level, start, length in zip(shown.level.tolist(), shown.start.tolist(), shown.duration.tolist(), strict=True):
        assert (level, start) in begins
        assert (level, start + length) in ends


def test_a_block_has_the_name_that_took_most_time_and_says_how_many_it_is() -> None:
    rows = [op("often", 10 * n, 2) for n in range(10)] + [op("costly", 200, 60)]
    every = lanes(prepare(make_trace(rows)))
    (found,), resolution = merge(every, 1, [])
    texts = ["often", "costly"]
    assert (found.count.tolist(), found.held.tolist()) == ([11], [80])
    assert texts[int(found.lane.text[0])] == "costly"
    assert resolution >= 260


def test_the_typical_and_the_slowest_step_stay_whole() -> None:
    trace = page_trace(steps=8)
    known = prepare(trace)
    typical, slowest = typical_and_slowest(known.windows)
    assert (known.windows.names[typical or 0], known.windows.names[slowest or 0]) == (
        "ProfilerStep#0",
        "ProfilerStep#6",
    )
    about, columns = _read(trace, 180)
    assert about["shown"] <= 180 < about["rows"]
    assert about["resolution_us"] > 0
    low, high = about["steps"][slowest][1] * 1000, (about["steps"][slowest][1] + about["steps"][slowest][2]) * 1000
    for column in columns:
        start = np.cumsum(column[0])
        inside = (start >= low) & (start < high)
        assert not np.array(column[5])[inside].any()


def test_a_hundred_thousand_rows_stay_whole() -> None:
    about, _ = _read(many_rows(100_000))
    assert about["resolution_us"] == 0
    assert about["shown"] == about["rows"] > 100_000
