"""What holds a step up: chains, waits, copies, loops, pauses and the optimizer, by hand and by slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from builders import Host, OnDevice, annotation, frame, kernel, launch, loading, make_trace, memcpy, op, runtime, step
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.bounds import costs
from tracelock.analysis.costs import Bounds, Costs
from tracelock.analysis.places import is_users
from tracelock.analysis.prepared import prepare
from tracelock.analysis.repeats import SHORTEST_RUN, in_loop
from tracelock.trace.columns import Trace

US = 1000


def found(trace: Trace) -> Costs:
    known = costs(prepare(trace))
    assert known is not None
    return known


def three_steps(rows: list[Host], device: list[OnDevice], length: int = 1000 * US) -> Trace:
    marks = [step(number, number * length, length) for number in range(3)]
    return make_trace([*marks, *rows], device)


# The bound of a gain.


@pytest.mark.parametrize(
    ("removal", "gain"),
    [
        ({"host": 60.0}, 0.3),  # no shorter than the device's 70
        ({"host": 20.0}, 0.2),
        ({"waiting": 10.0}, 0.1),
        ({"device": 50.0}, 0.1),  # no shorter than the host's 90
        ({"device": 50.0, "host": 60.0}, 0.7),
        ({}, 0.0),
    ],
)
def test_a_step_is_no_shorter_than_the_longer_chain(removal: dict[str, float], gain: float) -> None:
    assert Bounds(100.0, 70.0, 90.0, 10.0).gain(**removal) == pytest.approx(gain)


def test_without_a_device_every_host_time_counts() -> None:
    assert Bounds(100.0, None, 100.0, 0.0).gain(host=40.0) == pytest.approx(0.4)


amounts = st.floats(0, 200)


@given(amounts, amounts, amounts, amounts, amounts)
def test_a_bound_is_a_share_and_grows_with_what_is_removed(
    device_us: float, host_us: float, device: float, host: float, more: float
) -> None:
    bounds = Bounds(200.0, device_us, host_us, 0.0)
    less, most = bounds.gain(device, host), bounds.gain(device + more, host + more)
    assert 0.0 <= less <= most <= 1.0


# Waits.


def test_a_wait_counts_while_the_device_works_and_its_gap_is_the_stall() -> None:
    rows, device = [], []
    for number in range(3):
        at = number * 1000 * US
        rows += [
            launch(at, 5 * US, correlation=2 * number + 1),
            launch(at + 700 * US, 5 * US, correlation=2 * number + 2),
        ]
        rows += [
            op("aten::item", at + 90 * US, 520 * US),
            op("aten::_local_scalar_dense", at + 95 * US, 510 * US),
            runtime("cudaStreamSynchronize", at + 100 * US, 500 * US),
            frame("train.py(9): loss", at + 80 * US, 600 * US),
        ]
        device += [
            kernel("a", at + 10 * US, 580 * US, correlation=2 * number + 1),
            kernel("b", at + 710 * US, 200 * US, correlation=2 * number + 2),
        ]
    known = found(three_steps(rows, device))
    (wait,) = known.waits
    assert (wait.kind, wait.name, wait.calls_per_step) == ("synchronization", "aten::item", 1.0)
    assert wait.waiting_us == pytest.approx(490.0)  # from 100 to the kernel's end at 590
    assert wait.host_us == pytest.approx(510.0)  # the innermost operator around the call
    assert wait.stall_us == pytest.approx(120.0)  # from 590 to 710
    assert wait.rows[0].inside == "aten::item"
    assert wait.rows[0].code == "train.py(9): loss"
    assert known.bounds == Bounds(1000.0, 780.0, 510.0, 490.0)


def test_a_wait_while_the_device_does_nothing_is_no_waiting() -> None:
    rows = [launch(0, 5 * US, correlation=1), runtime("cudaDeviceSynchronize", 500 * US, 3 * US)]
    known = found(three_steps(rows, [kernel("a", 10 * US, 100 * US, correlation=1)]))
    assert known.waits[0].waiting_us == 0.0


def test_calls_are_told_apart_by_what_they_wait_for() -> None:
    rows = [
        op("aten::to", 0, 400 * US),
        runtime("cudaMemcpyAsync", 10 * US, 100 * US, correlation=1),
        runtime("cudaStreamSynchronize", 120 * US, 200 * US),
        op("aten::empty", 500 * US, 90 * US),
        runtime("cudaMalloc", 510 * US, 60 * US),
        op("aten::index", 600 * US, 90 * US),
        runtime("cudaMemcpyAsync", 610 * US, 60 * US, correlation=2),
        runtime("cudaLaunchKernel", 700 * US, 200 * US, correlation=3),
    ]
    device = [
        memcpy("HtoD", 20 * US, 90 * US, correlation=1),
        memcpy("HtoD", 620 * US, 10 * US, correlation=2),
        kernel("a", 900 * US, 50 * US, correlation=3),
    ]
    kinds = {(wait.kind, wait.name) for wait in found(three_steps(rows, device)).waits}
    assert kinds == {
        ("copy", "aten::to"),
        ("allocation", "aten::empty"),
        ("synchronization", "aten::index"),  # it copies its arguments: nobody asked for a copy
        ("queue", "cudaLaunchKernel"),
    }


# Copies.


def test_copies_are_grouped_by_memory_and_what_no_kernel_hides_is_exposed() -> None:
    rows = [
        op("aten::to", 0, 300 * US),
        runtime("cudaMemcpyAsync", 5 * US, 290 * US, correlation=1),
        op("aten::to", 400 * US, 20 * US),
        runtime("cudaMemcpyAsync", 405 * US, 5 * US, correlation=2),
        launch(350 * US, 5 * US, correlation=3),
    ]
    device = [
        memcpy("HtoD", 10 * US, 270 * US, correlation=1, bytes=100),
        memcpy("HtoD", 420 * US, 100 * US, "Pinned -> Device", correlation=2, stream=9),
        kernel("a", 370 * US, 100 * US, correlation=3),
    ]
    pageable, pinned = found(three_steps(rows, device)).copies
    assert (pageable.memory, pageable.waits, pageable.beside_kernels, pageable.asked) == ("pageable", True, False, True)
    assert pageable.exposed_us == pageable.device_us == pytest.approx(270.0)
    assert (pinned.memory, pinned.waits, pinned.beside_kernels) == ("pinned", False, True)
    assert pinned.exposed_us == pytest.approx(50.0)  # of 420..520 the kernel hides 420..470


# Loops.


def in_loop_slowly(names: list[int], layers: list[bool]) -> list[bool]:
    """Mark every stretch of 16 or more turns of one, two or three names, by trying all."""
    marked = [False] * len(names)
    for period in (1, 2, 3):
        for first in range(len(names)):
            last = first + period
            while last < len(names) and names[last] == names[last - period]:
                last += 1
            long = last - first >= SHORTEST_RUN * period
            starts = first == 0 or first - 1 + period >= len(names) or names[first - 1] != names[first - 1 + period]
            if long and starts and not any(layers[first : first + period]):
                marked[first:last] = [True] * (last - first)
    return marked


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 20)), max_size=12), st.sets(st.integers(0, 2)))
def test_loops_are_found_as_by_trying_all(runs: list[tuple[int, int]], products: set[int]) -> None:
    names = [name for name, count in runs for _ in range(count)]
    layers = [name in products for name in names]
    marked = in_loop(np.array(names, np.int32), np.array(layers, np.bool_))
    assert marked.tolist() == in_loop_slowly(names, layers)


def test_a_loop_is_counted_and_layers_are_not() -> None:
    rows = []
    for number in range(3):
        at = number * 1000 * US
        rows += [op("aten::stack", at + turn * 10 * US, 6 * US) for turn in range(40)]
        rows += [
            op(name, at + (500 + 10 * place) * US, 5 * US) for place, name in enumerate(("aten::mm", "aten::relu") * 20)
        ]
    (only,) = found(three_steps(rows, [])).repetitions
    assert (only.name, only.calls_per_step, only.mean_us, only.host_us) == ("aten::stack", 40.0, 6.0, 240.0)
    assert (only.in_loader, only.in_optimizer) == (False, False)


# Pauses and long steps.


def test_a_gap_in_which_nothing_works_is_named_by_the_frame_that_holds_most_of_it() -> None:
    rows = [
        op("aten::mm", 0, 100 * US),
        frame("train.py(3): save", 101 * US, 798 * US),
        op("aten::mm", 900 * US, 90 * US),
    ]
    (pause,) = found(three_steps(rows, [])).pauses[1:]  # the first is of the two steps without any operator
    assert (pause.code, pause.steps) == ("train.py(3): save", 1)
    assert pause.host_us == pytest.approx(800 / 3)


def test_a_gap_that_loading_or_the_optimizer_fills_is_none() -> None:
    length = 1000 * US
    rows = [loading(number * length, 600 * US) for number in range(3)]
    rows += [
        annotation("Optimizer.zero_grad#SGD.zero_grad", number * length + 600 * US, 400 * US) for number in range(3)
    ]
    assert found(three_steps(rows, [])).pauses == ()


def test_long_steps_are_measured_beyond_the_usual_one() -> None:
    marks, rows, at = [], [], 0
    for number, length in enumerate((100, 100, 100, 500)):
        marks.append(step(number, at, length * US))
        rows += [op("aten::mm", at + 10 * US * call, 5 * US) for call in range(length // 10)]
        at += length * US
    excess = found(make_trace([*marks, *rows])).excess
    assert excess is not None
    assert (excess.steps, excess.excess_us, excess.loading_us, excess.work) == (1, pytest.approx(100.0), 0.0, 5.0)
    assert excess.rows[0].name == "ProfilerStep#3"


# The optimizer.


@pytest.mark.parametrize(("name", "one_by_one"), [("aten::add_", True), ("aten::_foreach_add_", False)])
def test_parameters_one_by_one_are_told_by_the_operators(name: str, one_by_one: bool) -> None:
    rows = [annotation("Optimizer.step#SGD.step", 100 * US, 300 * US)]
    rows += [op(name, (110 + 20 * place) * US, 10 * US) for place in range(4)]
    rows += [launch((112 + 20 * place) * US, 4 * US, correlation=place + 1) for place in range(4)]
    device = [kernel("k", (500 + 50 * place) * US, 10 * US, correlation=place + 1) for place in range(4)]
    optimizer = found(three_steps(rows, device)).optimizer
    assert optimizer is not None
    assert optimizer.one_by_one is one_by_one
    assert optimizer.kernel_us == 10.0
    assert optimizer.device_us == pytest.approx(160.0)  # from 500 to 660, in the one step that the device has work of
    assert (optimizer.operators_per_step, optimizer.kernels_per_step) == (4.0, 4.0)


# Frames.


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("train.py(44): check", True),
        ("/home/me/project/model.py(7): forward", True),
        ("tracelock/runner/workloads/mlp.py(80): build", True),
        ("tracelock/runner/loop.py(169): _step", False),
        ("torch/nn/modules/module.py(1501): _call_impl", False),
        ("/usr/lib/python3.11/threading.py(1002): _bootstrap", False),
        ("threading.py(1002): _bootstrap", False),
        ("<built-in method item of Tensor object at 0x7f>", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_frames_of_the_user_are_told_from_those_of_libraries(name: str, users: bool) -> None:
    assert is_users(name) is users
