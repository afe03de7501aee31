"""Trees of calls against a stack, one row at a time."""

from __future__ import annotations

import numpy as np
from builders import annotation, frame, launch, make_trace, op
from hypothesis import given
from hypothesis import strategies as st
from strategies import END, in_chunks_of, traces

from tracelock.analysis.nesting import CALLS, nest, outermost, parents
from tracelock.trace.columns import HostKind, Trace

FIRST = np.array([0])
spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=25)


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    ordered = sorted(pairs, key=lambda pair: (pair[0], -pair[1]))
    start = np.array([low for low, _ in ordered], np.int64)
    return start, start + np.array([size for _, size in ordered], np.int64)


def stack_parents(start: list[int], end: list[int]) -> list[int]:
    """The twin: one stack, one row at a time."""
    found, stack = [], []
    for row, begun in enumerate(start):
        while stack and end[stack[-1]] <= begun:
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(row)
    return found


def innermost(start: list[int], end: list[int], tick: int) -> int | None:
    """The row that began last of those open at a nanosecond."""
    open_rows = [row for row in range(len(start)) if start[row] <= tick < end[row]]
    return max(open_rows, default=None)


def rows_of(pairs: list[tuple[int, int]]) -> Trace:
    return make_trace([op("a", low, size) for low, size in pairs])


@given(spans, st.integers(1, 6) | st.just(1 << 20))
def test_parents_are_those_of_a_stack(pairs: list[tuple[int, int]], chunk: int) -> None:
    start, end = columns(pairs)
    assert parents(start, end, FIRST[: len(start)]).tolist() == stack_parents(start.tolist(), end.tolist())
    with in_chunks_of(chunk):
        assert nest(rows_of(pairs).host).parent.tolist() == stack_parents(start.tolist(), end.tolist())


@given(spans, st.integers(1, 6) | st.just(1 << 20))
def test_own_time_is_when_a_row_is_the_innermost(pairs: list[tuple[int, int]], chunk: int) -> None:
    start, end = columns(pairs)
    owners = [innermost(start.tolist(), end.tolist(), tick) for tick in range(50)]
    with in_chunks_of(chunk):
        own = nest(rows_of(pairs).host).self_time
    assert own.tolist() == [owners.count(row) for row in range(len(pairs))]


def test_a_long_flat_list_and_a_deep_one() -> None:
    flat = np.arange(100_000) * 3
    assert (parents(flat, flat + 2, FIRST) == -1).all()
    inside = np.concatenate(([0], flat + 1))
    assert (parents(inside, np.concatenate(([400_000], flat + 2)), FIRST)[1:] == 0).all()
    deep = np.arange(2_000)
    assert parents(deep, 10_000 - deep, FIRST).tolist() == [*range(-1, 1_999)]


def test_ties_are_broken_by_length_then_order() -> None:
    trace = make_trace([op("inner", 0, 5), op("outer", 0, 9), op("twin", 0, 9)])
    tree = nest(trace.host)
    names = [trace.texts[name] for name in trace.host.name]
    assert names == ["outer", "twin", "inner"]
    assert tree.parent.tolist() == [-1, 0, 1]
    assert tree.self_time.tolist() == [0, 4, 5]


def test_threads_are_apart_and_frames_are_no_calls() -> None:
    trace = make_trace(
        [op("a", 0, 10), op("b", 2, 5, thread=2), frame("f", 1, 8), launch(3, 2, 7), annotation("label", 2, 6)]
    )
    tree = nest(trace.host)
    by_name = {trace.texts[name]: row for row, name in enumerate(trace.host.name)}
    assert tree.parent[by_name["b"]] == tree.parent[by_name["f"]] == -1
    assert tree.parent[by_name["label"]] == by_name["a"]
    assert tree.parent[by_name["cudaLaunchKernel"]] == by_name["label"]
    assert tree.self_time[by_name["f"]] == 0
    assert tree.self_time[by_name["a"]] == 4


@given(traces())
def test_own_times_of_a_thread_add_up_to_what_its_rows_cover(trace: Trace) -> None:
    tree, host = nest(trace.host), trace.host
    calls = np.isin(host.kind, CALLS)
    for track in set(host.track.tolist()):
        mine = calls & (host.track == track)
        covered = {
            tick
            for low, size in zip(host.start[mine].tolist(), host.duration[mine].tolist(), strict=True)
            for tick in range(low, low + size)
        }
        assert int(tree.self_time[mine].sum()) == len(covered)
        assert len(covered) <= END * 2


@given(traces())
def test_outermost_climbs_the_whole_way(trace: Trace) -> None:
    tree = nest(trace.host)
    rows = np.flatnonzero(trace.host.kind == HostKind.OPERATOR)
    expected = []
    for row in rows.tolist():
        above, names = int(tree.parent[row]), []
        while above >= 0:
            names.append(int(trace.host.name[above]))
            above = int(tree.parent[above])
        expected.append(int(trace.host.name[row]) not in names)
    assert outermost(trace.host.name, tree.parent, rows).tolist() == expected
