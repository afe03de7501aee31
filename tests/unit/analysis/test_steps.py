"""Steps and their windows."""

from __future__ import annotations

import pytest
from builders import OnDevice, annotation, kernel, launch, make_trace, op, step
from hypothesis import given
from strategies import traces

from tracelock.analysis.links import link
from tracelock.analysis.nesting import nest
from tracelock.analysis.steps import MARKED, WHOLE, Windows, find_windows
from tracelock.trace.columns import Device, DeviceKind, Trace


def windows(trace: Trace) -> Windows:
    return find_windows(trace, link(trace, nest(trace.host)))


def spans(found: Windows) -> list[tuple[int, int]]:
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def test_a_window_runs_to_the_end_of_the_work_it_launched() -> None:
    trace = make_trace(
        [step(1, 0, 100), step(2, 100, 100), launch(50, 5, 1), launch(150, 5, 2)],
        [kernel("k", 60, 70, correlation=1), kernel("k", 160, 20, correlation=2)],
    )
    found = windows(trace)
    assert found.names == ("ProfilerStep#1", "ProfilerStep#2")
    assert spans(found) == [(0, 130), (130, 200)]
    assert found.extent() == (0, 200)


def test_a_launch_that_crosses_the_end_of_a_step_belongs_to_none() -> None:
    trace = make_trace([step(1, 0, 100), launch(98, 5, 1)], [kernel("k", 110, 70, correlation=1)])
    assert spans(windows(trace)) == [(0, 100)]


def test_the_first_window_begins_after_work_from_before() -> None:
    trace = make_trace(
        [step(1, 0, 100), launch(50, 5, 1)], [kernel("earlier", -20, 50), kernel("k", 60, 10, correlation=1)]
    )
    assert spans(windows(trace)) == [(30, 100)]


def test_steps_of_the_device_are_no_steps() -> None:
    row = OnDevice("ProfilerStep#1", 5, 80, DeviceKind.ANNOTATION)
    assert windows(make_trace([step(1, 0, 100)], [row])).names == ("ProfilerStep#1",)
    assert windows(make_trace([op("a", 0, 10)], [row])).source == WHOLE


@pytest.mark.parametrize("rows", [0, 7])
def test_the_last_step_is_kept_and_marked_when_its_work_is_missing(rows: int) -> None:
    calls = [launch(10 + n, 1, 1 + n) for n in range(10)] + [launch(110 + n, 1, 11 + n) for n in range(rows)]
    work = [kernel("k", 20 + n, 1, correlation=1 + n) for n in range(10)]
    work += [kernel("k", 120 + n, 1, correlation=11 + n) for n in range(rows)]
    found = windows(make_trace([step(1, 0, 100), step(2, 100, 100), *calls], work))
    assert found.complete.tolist() == [True, False]
    assert found.extent() == (0, 100)


def test_eight_tenths_of_the_work_are_enough() -> None:
    calls = [launch(10 + n, 1, 1 + n) for n in range(10)] + [launch(110 + n, 1, 11 + n) for n in range(8)]
    work = [kernel("k", row.start + 5, 1, correlation=row.correlation) for row in calls]
    assert windows(make_trace([step(1, 0, 100), step(2, 100, 100), *calls], work)).complete.tolist() == [True, True]


@pytest.mark.parametrize(
    ("operators", "complete"),
    [
        ((10, 10, 0), [True, True, False]),  # the profiler was stopped just after the last prof.step()
        ((10, 10, 7), [True, True, False]),  # … or in the middle of a step
        ((10, 10, 8), [True, True, True]),
        ((20, 10, 20, 10), [True] * 4),  # steps of two kinds by turns: the last is like one of them
        ((10, 0, 10), [True] * 3),  # only the last can be cut short
        ((0, 0), [True, True]),
        ((9, 9, 0), [True] * 3),  # too few to tell
        ((15,), [True]),
    ],
)
def test_the_last_step_of_a_cpu_trace_is_a_piece_where_it_has_fewer_operators_than_any(
    operators: tuple[int, ...], complete: list[bool]
) -> None:
    rows = [step(number, 100 * number, 100) for number in range(len(operators))]
    rows += [op("aten::mm", 100 * at + 5 * n, 4) for at, count in enumerate(operators) for n in range(count)]
    assert windows(make_trace(rows)).complete.tolist() == complete


def test_a_step_written_twice_counts_once() -> None:
    found = windows(make_trace([step(1, 0, 100), step(1, 0, 100), step(1, 10, 50), step(2, 100, 50)]))
    assert spans(found) == [(0, 100), (100, 150)]
    assert [(each.code, each.count) for each in found.warnings] == [("steps-inside-steps", 2)]


def test_steps_of_the_thread_with_most_of_them_count() -> None:
    found = windows(make_trace([step(1, 0, 50), step(2, 50, 50), step(1, 20, 60, thread=9)]))
    assert found.names == ("ProfilerStep#1", "ProfilerStep#2")
    assert [(each.code, each.count) for each in found.warnings] == [("steps-on-several-threads", 1)]


def test_without_steps_the_operators_make_one_window() -> None:
    trace = make_trace([annotation("before", -50, 10), op("a", 0, 10), op("b", 40, 20, thread=2)])
    found = windows(trace)
    assert (found.source, spans(found)) == (WHOLE, [(0, 60)])
    with_work = make_trace([op("a", 0, 10)], [kernel("k", 5, 90)])
    assert spans(windows(with_work)) == [(0, 95)]
    assert spans(windows(make_trace([], [kernel("k", 5, 90)]))) == [(5, 95)]
    assert len(windows(make_trace())) == 0


def test_a_cut_file_keeps_the_steps_that_have_their_rows() -> None:
    host = [step(n, n * 100, 100) for n in range(3)]
    host += [op("a", n * 100 + k, 1) for n in range(3) for k in range(10)]
    calls = [launch(n * 100 + 20 + k, 1, 1 + n * 10 + k) for n in range(3) for k in range(10)]
    work = [kernel("k", call.start + 2, 1, correlation=call.correlation) for call in calls]
    whole = windows(make_trace(host + calls, work, quality="partial"))
    assert whole.complete.tolist() == [True, True, True]
    missing = windows(make_trace(host + calls, work[:15] + work[20:], quality="partial"))
    assert missing.complete.tolist() == [True, False, True]
    fewer_calls = windows(make_trace(host + calls[:17], work[:17], quality="partial"))
    assert fewer_calls.complete.tolist() == [True, False, False]


def test_a_cut_file_without_its_device_rows_has_no_complete_step() -> None:
    host = [step(1, 0, 100), step(2, 100, 100), op("a", 0, 9), op("a", 100, 9)]
    assert windows(make_trace(host, quality="partial")).complete.tolist() == [True, True]
    gpu = (Device(0, "A100"),)
    assert windows(make_trace(host, quality="partial", devices=gpu)).complete.tolist() == [False, False]


@given(traces())
def test_windows_follow_one_another_and_hold_their_steps(trace: Trace) -> None:
    found = windows(trace)
    assert (found.start <= found.end).all()
    if found.source == MARKED:
        assert (found.start[1:] >= found.end[:-1]).all()
        assert (found.end >= found.host_end).all()
        assert (found.start >= found.host_start).all()
