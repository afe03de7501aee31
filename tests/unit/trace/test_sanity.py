"""Rows that cannot be true are left out, counted and named; rows that only look odd are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_files import counts, kernel, names, op, read_text

from tracelock.trace import Trace, read_trace


def read(folder: Path, *events: dict[str, Any]) -> Trace:
    """Read a trace of these events."""
    return read_text(folder, json.dumps({"traceEvents": events}))


def at(number: int, start: float, duration: float, **args: Any) -> dict[str, Any]:
    """Return a kernel of stream 7 with its times in µs."""
    return kernel(number, ts=start, dur=duration, args={"device": 0, "stream": 7, "correlation": number} | args)


def steady(count: int = 50) -> list[dict[str, Any]]:
    """Return kernels of 100 µs, one every 200 µs."""
    return [at(number, 200 * number, 100) for number in range(1, count + 1)]


def test_a_kernel_that_outlasts_many_of_its_stream_is_impossible(tmp_path: Path) -> None:
    trace = read(tmp_path, *steady(), at(99, 1001, 900_000))
    assert counts(trace) == {"impossible-duration": 1}
    assert "kernel99" not in names(trace)
    assert len(trace.device) == 50


def test_a_kernel_that_outlasts_all_there_is_is_impossible_even_before_few_others(tmp_path: Path) -> None:
    trace = read(tmp_path, at(1, 1000, 3_400_000), at(2, 2000, 300), at(3, 3000, 300))
    assert counts(trace) == {"impossible-duration": 1}
    assert names(trace) == {"kernel2", "kernel3"}


def test_a_long_kernel_at_the_end_of_its_stream_is_possible(tmp_path: Path) -> None:
    assert counts(read(tmp_path, *steady(), at(99, 20_000, 900_000))) == {}


def test_the_next_kernel_may_begin_early_once(tmp_path: Path) -> None:
    # Programmatic dependent launch: the second starts while the first still runs, the third waits.
    assert counts(read(tmp_path, at(1, 1000, 5000), at(2, 1001, 5010), at(3, 6020, 100), at(4, 6200, 100))) == {}


@pytest.mark.parametrize("shared_by", ["correlation", "graph id"])
def test_kernels_of_a_graph_may_overlap_on_one_stream(tmp_path: Path, shared_by: str) -> None:
    long, *branch = (at(n, 1000 + n, 2 if n else 8000, **{shared_by: 5}) for n in range(60))
    after = [at(number, 9000 + 200 * number, 50) for number in range(100, 120)]
    trace = read(tmp_path, long, *branch, *after)
    assert counts(trace) == {}


def test_kernels_of_other_streams_and_devices_do_not_count(tmp_path: Path) -> None:
    others = [
        kernel(number, ts=1000 + number, dur=1, pid=number % 2, tid=8, args={"device": number % 2, "stream": 8})
        for number in range(40)
    ]
    other_device = [kernel(50 + n, ts=1000 + n, dur=1, pid=1, args={"device": 1, "stream": 7}) for n in range(40)]
    assert counts(read(tmp_path, at(99, 1000, 900_000), *others, *other_device)) == {}


def test_annotations_and_waits_on_a_device_may_last(tmp_path: Path) -> None:
    span = kernel(1, cat="gpu_user_annotation", name="step", ts=100, dur=10_000)
    wait = kernel(2, cat="cuda_sync", name="Stream Sync", ts=100, dur=10_000)
    assert counts(read(tmp_path, span, wait, *steady())) == {}


def test_negative_durations_and_rows_without_one(tmp_path: Path) -> None:
    trace = read(tmp_path, op(1), op(2, dur=-1), kernel(3, dur=-0.001), kernel(4))
    assert counts(trace) == {"negative-duration": 2}
    assert names(trace) == {"aten::op1", "kernel4"}


def test_a_row_at_time_zero_far_from_all_others_is_left_out(tmp_path: Path) -> None:
    base = 1_700_000_000_000_000
    trace = read(
        tmp_path, *[op(number, ts=base + number) for number in range(20)], op(99, ts=0, dur=0), op(98, ts=0, dur=7)
    )
    assert counts(trace) == {"zero-timestamp": 2}


def test_thousands_of_empty_rows_at_zero_are_left_out_wherever_the_clock_begins(tmp_path: Path) -> None:
    rows = [op(number, ts=10 + number) for number in range(200)]
    zeros = [op(number, ts=0, dur=0) for number in range(1000, 3000)]
    assert counts(read(tmp_path, *rows, *zeros)) == {"zero-timestamp": 2000}
    assert counts(read(tmp_path, *rows, *zeros[:20])) == {}
    epoch = [op(number, ts=1_700_000_000_000_000 + number) for number in range(200)]
    assert counts(read(tmp_path, *epoch, *zeros)) == {"zero-timestamp": 2000}


def test_a_clock_that_begins_at_zero_is_sound(tmp_path: Path) -> None:
    assert counts(read(tmp_path, op(0, ts=0, dur=50), *[op(n, ts=n) for n in range(1, 9)], kernel(1, ts=0))) == {}


def test_rows_years_away_are_left_out_of_every_table(tmp_path: Path) -> None:
    year_3000 = 32_503_680_000_000_000
    base = 1_700_000_000_000_000
    memory = {
        "ph": "i",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "args": {"Bytes": 1, "Device Type": 0, "Device Id": -1},
    }
    flow = {"ph": "s", "cat": "ac2g", "id": 1, "pid": 1, "tid": 1}
    trace = read(
        tmp_path,
        *[op(number, ts=base + number) for number in range(9)],
        op(99, ts=year_3000),
        kernel(98, ts=year_3000),
        op(97, ts=base, dur=year_3000),
        *[row | {"ts": time} for row in (memory, flow) for time in (base, year_3000)],
        {"ph": "i", "name": "Record Window End", "s": "g", "pid": "", "tid": "", "ts": 9.2e18},
    )
    assert counts(trace) == {"far-away": 5, "far-away-window": 1}
    assert (len(trace.host), len(trace.device), len(trace.memory), len(trace.flows)) == (9, 0, 1, 1)


def test_events_without_times_are_counted_in_every_table(tmp_path: Path) -> None:
    memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "args": {"Bytes": 1}}
    flow = {"ph": "f", "cat": "ac2g", "id": 1, "pid": 1, "tid": 1}
    instant = {"ph": "i", "cat": "cpu_op", "name": "a mark among operators", "pid": 1, "tid": 1, "ts": 5}
    trace = read(tmp_path, op(1), memory, flow, instant)
    assert counts(trace) == {"no-timestamp": 2}


def test_every_damaged_example_is_read_or_refused_as_it_should(shared: Path) -> None:
    expected = {
        "01_truncated_midevent": ("partial", {"cut-off": 1}),
        "03_inf_literal": ("salvaged", {"bad-number": 1}),
        "05_invalid_escape": ("salvaged", {"bad-escape": 1}),
        "07_non_utf8": ("salvaged", {"not-utf8": 1}),
        "15_negative_dur": ("salvaged", {"negative-duration": 1}),
        "19_no_dur": ("salvaged", {"no-duration": 1}),
        "27_impossible_duration": ("salvaged", {"impossible-duration": 1}),
        "33_event_without_name": ("salvaged", {"no-name": 1}),
        "36_record_window_end_huge": ("complete", {"far-away-window": 1}),
        "41_gzip_truncated": ("partial", {"archive-cut-off": 1, "cut-off": 1}),
    }
    found = {path.name.partition(".")[0]: path for path in sorted((shared / "damaged").iterdir())}
    for name, path in found.items():
        if name not in ("44_empty_file", "10_no_traceEvents"):
            facts = read_trace(path).facts
            said = {warning.code: warning.count for warning in facts.warnings}
            assert (facts.quality, said) == expected.get(name, ("complete", {})), name
