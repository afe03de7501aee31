"""Threads: what the main thread spent its time on, and who else worked."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest
from builders import Host, annotation, launch, loading, make_trace, op, step
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.prepared import prepare
from tracelock.analysis.sections import MainThread, Thread, Threads
from tracelock.analysis.threads import threads
from tracelock.trace import Trace, read_trace

ENGINE = "autograd::engine::evaluate_function: AddmmBackward0"


def analyse(trace: Trace, low: int | None = None, high: int | None = None) -> Threads | None:
    known = prepare(trace)
    calls = collective_calls(trace, known.tree, known.links)
    window = known.extent if low is None or high is None else (low, high)
    return threads(trace, known.tree, calls, *window)


def test_figures_by_hand() -> None:
    """A step of 1000 ns: loading, forward, backward on its own thread, gloo on a third."""
    found = analyse(
        make_trace(
            host=[
                step(0, 0, 1000),
                loading(0, 200),
                op("aten::stack", 50, 100),  # part of loading
                op("aten::addmm", 200, 100),
                launch(250, 30, correlation=1),
                op(ENGINE, 350, 250, thread=2),
                annotation("gloo:all_reduce", 550, 250, thread=3),
                op("aten::add_", 700, 150),
            ],
            track_names={(100, 2): {"thread_name": "pt_autograd_0"}, (100, 1): {"thread_name": "thread 1 (python)"}},
        )
    )
    assert found == Threads(
        window_us=1.0,
        main_us=MainThread(dataloader=0.2, communication=0.15, runtime=0.03, operators=0.22, backward=0.2, other=0.2),
        items=(
            Thread("100/1", "main", 0.45, 0.45, 4),
            Thread("100/2 pt_autograd_0", "backward", 0.25, 0.25, 1),
            Thread("100/3", "communication", 0.25, 0.25, 0),
        ),
        concurrency=pytest.approx(950 / 800),
        most_at_once=2,
        slowdown=None,
    )


def test_the_main_thread_is_that_of_the_steps_else_of_loading_else_the_busiest_forward_one() -> None:
    work = [op("aten::mm", 0, 10, thread=1), op("aten::mm", 0, 50, thread=2), op(ENGINE, 0, 90, thread=3)]
    for extra, expected in (([], "100/2"), ([loading(0, 5)], "100/1"), ([step(0, 0, 99, thread=3)], "100/3")):
        found = analyse(make_trace(host=[*work, *extra]), 0, 100)
        assert found is not None
        assert next(each.name for each in found.items if each.role == "main") == expected


def test_a_backward_thread_is_known_by_the_forward_thread_it_names() -> None:
    host = [op("aten::mm", 0, 50), op("MulBackward0", 60, 10, thread=2, forward_thread=1)]
    found = analyse(make_trace(host=host), 0, 100)
    assert found is not None
    assert [(each.name, each.role) for each in found.items] == [("100/1", "main"), ("100/2", "backward")]


def test_without_work_of_the_host_nothing_is_said() -> None:
    assert analyse(make_trace(host=[annotation("mine", 0, 10)]), 0, 10) is None


def test_slowdown_by_hand() -> None:
    """Ten calls of one shape: nine take 10 ns, one 100 ns; the fast ones would take 100 ns in all."""
    shapes = "[[8,8]]"
    lengths = [10] * 9 + [100]
    host = [op("aten::mm", 200 * number, length, shapes=shapes) for number, length in enumerate(lengths)]
    other = [op("aten::mm", 5000, 400, shapes="[[99,99]]")]  # another shape, called once
    found = analyse(make_trace(host=[*host, *other]), 0, 6000)
    assert found is not None
    assert found.slowdown == pytest.approx(1.9)


calls = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15), st.integers(1, 4)), min_size=1, max_size=10)


@given(calls)
def test_the_parts_of_the_main_thread_are_those_of_a_slow_twin(rows: list[tuple[int, int, int]]) -> None:
    makers = {
        1: lambda start, length: op("aten::mm", start, length),
        2: lambda start, length: op(ENGINE, start, length, thread=2),
        3: lambda start, length: annotation("gloo:all_reduce", start, length, thread=3),
        4: lambda start, length: loading(start, length),
    }
    host: list[Host] = [makers[kind](start, length) for start, length, kind in rows]
    found = analyse(make_trace(host=[step(0, 0, 80), *host]), 0, 80)
    at = {kind: {t for s, n, k in rows if k == kind for t in range(s, s + n)} for kind in makers}
    spent = {"dataloader": 0, "operators": 0, "communication": 0, "backward": 0, "other": 0}
    for tick in range(80):
        kinds = [name for name, kind in (("dataloader", 4), ("operators", 1), ("communication", 3), ("backward", 2))]
        spent[next((name for name, kind in zip(kinds, (4, 1, 3, 2), strict=True) if tick in at[kind]), "other")] += 1
    if not any(kind in (1, 4) for _, _, kind in rows):
        return  # the steps' thread did nothing of its own
    assert found is not None
    assert {name: getattr(found.main_us, name) for name in spent} == pytest.approx(
        {name: ticks / 1000 for name, ticks in spent.items()}
    )
    busy = [{t for t in held if t < 80} for held in (at[1] | at[4], at[2], at[3])]
    assert found.most_at_once == max(sum(tick in held for held in busy) for tick in range(80))
    together = set().union(*busy)
    assert found.concurrency == pytest.approx(sum(map(len, busy)) / len(together))


def test_real_traces_keep_the_laws_of_threads(shared: Path) -> None:
    for path in sorted((shared / "traces").glob("*.json.gz")):
        found = analyse(read_trace(path))
        if found is None:
            continue
        assert sum(astuple(found.main_us)) == pytest.approx(found.window_us)
        assert all(part >= 0 for part in astuple(found.main_us))
        assert all(0 < each.share <= 1 for each in found.items)
        assert 1 <= (found.concurrency or 0) <= found.most_at_once <= len(found.items)
        assert found.slowdown is None or found.slowdown >= 1


def test_a_trace_of_the_cpu_alone_tells_that_it_waits_for_gloo(shared: Path) -> None:
    found = analyse(read_trace(shared / "traces" / "hta-cpu-only.json.gz"))
    assert found is not None
    assert found.main_us.communication / found.window_us == pytest.approx(0.8265, abs=1e-3)
    assert [each.role for each in found.items] == ["communication", "communication", "main"]
