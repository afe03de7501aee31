"""What operators cost, against sums over rows found one by one."""

from __future__ import annotations

from builders import MemoryEvent, annotation, frame, kernel, launch, loading, make_trace, memcpy, op, runtime, step
from hypothesis import given
from strategies import traces

from tracelock.analysis import analyze
from tracelock.analysis.links import is_busy, link
from tracelock.analysis.model import Operator
from tracelock.analysis.nesting import nest
from tracelock.trace.columns import HostKind, Trace


def named(rows: tuple[Operator, ...]) -> dict[str, Operator]:
    return {row.name: row for row in rows}


def test_host_and_device_time_by_hand() -> None:
    trace = make_trace(
        [
            op("aten::linear", 0, 100_000),
            op("aten::addmm", 10_000, 60_000),
            launch(20_000, 5_000, 1),
            annotation("forward", 0, 200_000),
            op("aten::add", 120_000, 10_000),
            launch(122_000, 3_000, 2),
        ],
        [kernel("gemm", 200_000, 40_000, correlation=1), memcpy("DtoD", 250_000, 7_000, correlation=2)],
    )
    found = analyze(trace)
    rows = named(found.operators)
    assert [row.name for row in found.operators] == ["aten::addmm", "aten::linear", "aten::add"]
    linear, addmm = rows["aten::linear"], rows["aten::addmm"]
    assert (linear.calls, linear.self_cpu_us, linear.total_cpu_us) == (1, 40, 100)
    assert (linear.self_device_us, linear.total_device_us) == (0, 40)
    assert (addmm.self_cpu_us, addmm.total_cpu_us, addmm.self_device_us, addmm.total_device_us) == (55, 60, 40, 40)
    (label,) = found.labels
    assert (label.name, label.total_cpu_us, label.self_cpu_us, label.total_device_us) == ("forward", 200, 90, 47)
    (call,) = found.runtime
    assert (call.name, call.calls, call.self_cpu_us, call.total_device_us) == ("cudaLaunchKernel", 2, 8, 0)


def test_recursion_is_counted_once() -> None:
    trace = make_trace(
        [op("f", 0, 100), op("g", 10, 60), op("f", 20, 30), launch(30, 5, 1)], [kernel("k", 90, 9, correlation=1)]
    )
    f = named(analyze(trace).operators)["f"]
    assert (f.calls, f.total_cpu_us, f.self_cpu_us) == (2, 0.1, 0.065)
    assert (f.self_device_us, f.total_device_us) == (0.009, 0.009)


def test_loading_is_an_operator_in_every_spelling_and_steps_are_none() -> None:
    name = loading(0, 1).name
    for row in (loading(10, 20), annotation(name, 10, 20)):
        found = analyze(make_trace([op("ProfilerStep#4", 0, 100), row]))
        assert [each.name for each in found.operators] == [name]
        assert found.labels == ()


def test_calls_per_step_are_those_of_complete_steps() -> None:
    host = [step(0, 0, 100), step(1, 100, 100), *(op("a", at, 1) for at in (5, 50, 150, 250))]
    assert named(analyze(make_trace(host)).operators)["a"].calls_per_step == 1.5
    assert named(analyze(make_trace(host[2:])).operators)["a"].calls_per_step is None


def test_allocations_belong_to_the_innermost_operator() -> None:
    host = [op("outer", 0, 100), op("inner", 10, 20)]
    memory = [MemoryEvent(15, 64, allocated=64), MemoryEvent(50, 8, allocated=72), MemoryEvent(60, -64, allocated=8)]
    rows = named(analyze(make_trace(host, memory=memory)).operators)
    assert (rows["inner"].allocated_bytes, rows["outer"].allocated_bytes) == (64, 8)
    assert named(analyze(make_trace(host)).operators)["inner"].allocated_bytes is None


def test_device_time_is_unknown_on_the_host_alone() -> None:
    found = analyze(make_trace([op("a", 0, 10)]))
    assert found.operators[0].self_device_us is None
    assert found.unknown["operators[].self_device_us"] == "the trace has no device rows"


def test_by_shape() -> None:
    host = [
        op("aten::mm", 0, 10, shapes="[[2,3],[3,4]]"),
        op("aten::mm", 20, 30, shapes="[[2,3],[3,4]]"),
        op("aten::mm", 60, 5, shapes="[[8,8],[8,8]]"),
        op("aten::add", 70, 5),
    ]
    found = analyze(make_trace(host)).operators_by_shape
    assert [(row.name, row.shapes, row.calls, row.total_cpu_us) for row in found] == [
        ("aten::mm", "[[2,3],[3,4]]", 2, 0.04),
        ("aten::mm", "[[8,8],[8,8]]", 1, 0.005),
    ]
    assert "operators_by_shape" in analyze(make_trace(host[3:])).unknown


def test_a_call_inside_one_of_other_shapes_is_counted_in_both() -> None:
    host = [op("f", 0, 100, shapes="[1]"), op("f", 10, 50, shapes="[2]"), launch(20, 5, 1)]
    found = analyze(make_trace(host, [kernel("k", 200, 7, correlation=1)]))
    rows = {row.shapes: (row.total_cpu_us, row.self_device_us, row.total_device_us) for row in found.operators_by_shape}
    assert rows == {"[1]": (0.1, 0, 0.007), "[2]": (0.05, 0.007, 0.007)}
    assert found.operators[0].total_cpu_us == 0.1


def test_by_written_stack() -> None:
    host = [op("a", 0, 10, stack="b.py(2): g; a.py(1): f"), op("a", 20, 10, stack="c.py(3): h"), op("a", 40, 5)]
    found = analyze(make_trace(host)).operators_by_stack
    assert [(row.name, row.stack, row.calls) for row in found] == [
        ("a", "b.py(2): g\na.py(1): f", 1),
        ("a", "c.py(3): h", 1),
    ]


def test_by_frames() -> None:
    host = [
        frame("main", 0, 1000),
        frame("train", 10, 400),
        op("outer", 20, 100),
        frame("hook", 30, 50),
        op("a", 40, 20),
        op("a", 200, 20),
        frame("train", 500, 400),
        op("a", 510, 30),
        op("a", 1500, 5),
        runtime("cudaLaunchKernel", 210, 5, correlation=1),
    ]
    found = analyze(make_trace(host, [kernel("k", 300, 7, correlation=1)])).operators_by_stack
    assert sorted((row.name, row.stack, row.calls, row.total_cpu_us, row.self_device_us) for row in found) == [
        ("a", "hook\ntrain\nmain", 1, 0.02, 0),
        ("a", "train\nmain", 2, 0.05, 0.007),
        ("outer", "train\nmain", 1, 0.1, 0),
    ]
    assert "operators_by_stack" in analyze(make_trace([op("a", 0, 5)])).unknown


def ancestors(trace: Trace, row: int) -> list[int]:
    """The twin's way up: rows around a row, innermost first, itself included."""
    parent, found = nest(trace.host).parent, []
    while row >= 0:
        found.append(row)
        row = int(parent[row])
    return found


def chain_of(trace: Trace, caller: int) -> list[int]:
    """The operators around a launch, innermost first."""
    return [row for row in ancestors(trace, caller) if trace.host.kind[row] == HostKind.OPERATOR] if caller >= 0 else []


@given(traces())
def test_sums_are_those_of_rows_found_one_by_one(trace: Trace) -> None:
    host, device = trace.host, trace.device
    tree = nest(host)
    links, busy = link(trace, tree), is_busy(device)
    chains = [chain_of(trace, int(links.caller[row])) if busy[row] else [] for row in range(len(device))]
    for found in analyze(trace).operators:
        rows = [
            row
            for row in range(len(host))
            if trace.texts[host.name[row]] == found.name and host.kind[row] == HostKind.OPERATOR
        ]
        outer = [row for row in rows if all(host.name[up] != host.name[row] for up in ancestors(trace, row)[1:])]
        assert found.calls == len(rows)
        assert found.total_cpu_us == sum(int(host.duration[row]) for row in outer) / 1000
        assert found.self_cpu_us == sum(int(tree.self_time[row]) for row in rows) / 1000
        if len(device):
            own = sum(int(device.duration[n]) for n, chain in enumerate(chains) if chain and chain[0] in rows)
            whole = sum(int(device.duration[n]) for n, chain in enumerate(chains) if set(chain) & set(rows))
            assert (found.self_device_us, found.total_device_us) == (own / 1000, whole / 1000)


@given(traces())
def test_linked_device_time_is_given_to_operators_once(trace: Trace) -> None:
    links = link(trace, nest(trace.host))
    known = is_busy(trace.device) & (links.operator >= 0)
    total = int(trace.device.duration[known].sum())
    own = sum(round((row.self_device_us or 0) * 1000) for row in analyze(trace).operators)
    assert own == total
