"""Flame graphs: paths, totals and calls, against a walk through the calls one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
from builders import annotation, frame, kernel, launch, make_trace, op, step
from hypothesis import given
from hypothesis import strategies as st
from strategies import host_rows

from tracelock.analysis.flames import Flame, flame, innermost_around
from tracelock.analysis.nesting import CALLS, nest
from tracelock.analysis.prepared import prepare
from tracelock.trace import Trace
from tracelock.trace.columns import HostKind


def paths(trace: Trace, found: Flame) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """Return total, own time and calls by path of names from outside."""
    whole: list[tuple[str, ...]] = []
    for name, parent in zip(found.name.tolist(), found.parent.tolist(), strict=True):
        whole.append((*(whole[parent] if parent >= 0 else ()), trace.texts[name]))
    rows = zip(found.total.tolist(), found.own.tolist(), found.calls.tolist(), strict=True)
    return dict(zip(whole, rows, strict=True))


def test_calls_of_one_path_add_up_and_recursion_becomes_depth() -> None:
    trace = make_trace(
        [op("a", 0, 100), op("b", 10, 20), op("a", 40, 30), op("b", 45, 5), op("a", 200, 50), op("b", 210, 10)]
    )
    tree = nest(trace.host)
    assert paths(trace, flame(trace, tree, np.ones(6, np.bool_))) == {
        ("a",): (150, 90, 2),
        ("a", "b"): (30, 30, 2),
        ("a", "a"): (30, 25, 1),
        ("a", "a", "b"): (5, 5, 1),
    }


def test_steps_are_passed_over_and_threads_meet_in_one_graph() -> None:
    trace = make_trace([step(0, 0, 100), op("a", 1, 9), step(1, 100, 100), op("a", 101, 9), op("a", 5, 2, thread=2)])
    chosen = trace.host.kind == HostKind.OPERATOR
    assert paths(trace, flame(trace, nest(trace.host), chosen)) == {("a",): (20, 20, 3)}


def test_device_time_is_that_of_a_call_and_of_all_calls_inside() -> None:
    trace = make_trace(
        [op("a", 0, 100), op("b", 10, 20), launch(15, 5, 1), launch(50, 5, 2)],
        [kernel("k", 40, 7, correlation=1), kernel("k", 60, 11, correlation=2)],
    )
    known = prepare(trace)
    weights = np.zeros(len(trace.host), np.int64)
    np.add.at(weights, known.links.caller, trace.device.duration)
    found = paths(trace, flame(trace, known.tree, trace.host.kind == HostKind.OPERATOR, weights))
    assert found == {("a",): (18, 11, 1), ("a", "b"): (7, 7, 1)}


def test_short_paths_are_left_out_and_counted_but_not_those_around_long_ones() -> None:
    rows = [op("outer", 0, 100), annotation("long", 0, 90), *(op(f"short{n}", 90 + n, 1) for n in range(5))]
    trace = make_trace(rows)
    found = flame(trace, nest(trace.host), np.ones(len(rows), np.bool_), most=2)
    assert list(paths(trace, found)) == [("outer",), ("outer", "long")]
    assert found.left_out == 5


def test_an_empty_choice_is_an_empty_graph() -> None:
    trace = make_trace([frame("f", 0, 1)])
    found = flame(trace, nest(trace.host), np.zeros(1, np.bool_))
    assert len(found) == 0
    assert found.left_out == 0


@given(st.data())
def test_every_graph_is_that_of_the_walk(data: st.DataObject) -> None:
    trace = make_trace(data.draw(host_rows()))
    tree, host = nest(trace.host), trace.host
    chosen = np.isin(host.kind, CALLS) & np.array(
        data.draw(st.lists(st.booleans(), min_size=len(host), max_size=len(host))), np.bool_
    )
    totals: Counter[tuple[str, ...]] = Counter()
    for row in np.flatnonzero(chosen).tolist():
        path, at = [], row
        while at >= 0:
            path += [trace.texts[host.name[at]]] if chosen[at] else []
            at = int(tree.parent[at])
        totals[tuple(reversed(path))] += int(host.duration[row])
    found = paths(trace, flame(trace, tree, chosen, most=10**6))
    assert {path: total for path, (total, _, _) in found.items()} == {
        path: each for path, each in totals.items() if each or path in found
    }


def test_the_innermost_wanted_row_around() -> None:
    parent = np.array([-1, 0, 1, 2], np.int32)
    wanted = np.array([True, False, False, True])
    assert innermost_around(parent, np.array([0, 1, 2, 3]), wanted).tolist() == [-1, 0, 0, 0]
