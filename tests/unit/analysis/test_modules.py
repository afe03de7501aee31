"""The tree of modules: forward by frames, backward by sequence numbers, device time by launches."""

from __future__ import annotations

import numpy as np
from builders import frame, kernel, launch, make_trace, op

from tracelock.analysis.modules import modules
from tracelock.analysis.prepared import prepare

FORWARD = [
    frame("train.py(1): main", 0, 1000),
    frame("nn.Module: Net_0", 10, 300),
    frame("net.py(5): forward", 12, 290),
    frame("nn.Module: Linear_0", 20, 100),
    op("aten::linear", 30, 50, sequence=5, forward_thread=0),
    op("aten::addmm", 35, 40, sequence=5, forward_thread=0),
    launch(40, 5, correlation=1),
    frame("nn.Module: Linear_1", 150, 80),
    op("aten::linear", 160, 40, sequence=6, forward_thread=0),
    launch(165, 5, correlation=2),
    op("aten::add", 250, 20, sequence=7, forward_thread=0),
]
BACKWARD = [
    op("AddBackward0", 400, 30, sequence=7, forward_thread=1, thread=2),
    op("AddmmBackward0", 450, 60, sequence=6, forward_thread=1, thread=2),
    op("aten::mm", 455, 30, thread=2),
    launch(460, 5, correlation=3, thread=2),
    op("AddmmBackward0", 520, 70, sequence=5, forward_thread=1, thread=2),
]
DEVICE = [
    kernel("gemm", 60, 11, correlation=1),
    kernel("gemm", 180, 13, correlation=2),
    kernel("gemm", 480, 17, correlation=3),
]


def test_a_module_holds_what_runs_within_it_and_the_gradients_of_that() -> None:
    found = modules(prepare(make_trace([*FORWARD, *BACKWARD], DEVICE)), None)
    net, first, second = found
    assert [each.name for each in found] == ["Net_0", "Linear_0", "Linear_1"]
    assert [each.parent for each in found] == [None, 0, 0]
    assert (net.forward_us, net.own_forward_us) == (0.3, 0.12)
    assert (net.forward_device_us, first.forward_device_us, second.forward_device_us) == (0.024, 0.011, 0.013)
    assert (net.backward_us, first.backward_us, second.backward_us) == (0.16, 0.07, 0.06)
    assert (net.backward_device_us, first.backward_device_us, second.backward_device_us) == (0.017, 0.0, 0.017)


def test_a_backward_pass_that_nothing_tells_of_is_unknown_and_not_zero() -> None:
    found = modules(prepare(make_trace(FORWARD)), None)
    assert {each.backward_us for each in found} == {None}
    assert {each.forward_device_us for each in found} == {None}


def test_numbers_are_those_of_the_thread_that_ran_forward() -> None:
    other = [
        frame("nn.Module: Other_0", 20, 100, thread=3),
        op("aten::mul", 30, 10, sequence=5, forward_thread=0, thread=3),
    ]
    found = {each.name: each for each in modules(prepare(make_trace([*FORWARD, *BACKWARD, *other])), None)}
    assert found["Other_0"].backward_us is None
    assert found["Linear_0"].backward_us == 0.07


def test_calls_of_one_path_are_one_module_and_memory_is_that_of_its_forward_pass() -> None:
    rows = [*FORWARD, frame("nn.Module: Net_0", 2000, 100), op("aten::relu", 2010, 10)]
    known = prepare(make_trace(rows))
    allocated = np.zeros(len(known.trace.host), np.int64)
    allocated[known.trace.host.start == 2010] = 512
    allocated[known.trace.host.start == 35] = 64
    found = {each.name: each for each in modules(known, allocated)}
    assert found["Net_0"].calls == 2
    assert (found["Net_0"].allocated_bytes, found["Linear_0"].allocated_bytes) == (576, 64)


def test_without_frames_of_modules_there_are_none() -> None:
    assert modules(prepare(make_trace([op("aten::mm", 0, 10)])), None) == ()
