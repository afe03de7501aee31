"""Work that is not needed beside a device: the longer chain decides, and the backward pass has a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from builders import Host, OnDevice, kernel, launch, make_trace, op, runtime, step

from tracelock.analysis.analyze import analyze
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.model import Finding
from tracelock.trace.columns import DeviceKind

US = 1000
STEPS, LAYERS = 6, 10
ENGINE = "autograd::engine::evaluate_function: "
Extra = Sequence[tuple[str, int, int]]  # operator, µs of the host, µs of the device


class Job:
    """Steps of ten layers on a device, one kernel an operator; the backward pass on thread 2."""

    def __init__(self, host_us: int, device_us: int) -> None:
        self.host_us, self.device_us = host_us, device_us
        self.host: list[Host] = []
        self.device: list[OnDevice] = []
        self.now = self.free = self.number = self.launched = 0

    def run(
        self, name: str, host_us: int, device_us: int, thread: int = 1, sequence: int = -1, types: str | None = None
    ) -> None:
        """Run one operator: its kernel begins once the device is free."""
        start = self.now
        shapes = "[[64, 64]]" if types else None
        self.host.append(op(name, start, host_us * US, thread=thread, sequence=sequence, types=types, shapes=shapes))
        self.launched += 1
        self.host.append(launch(start + US, US, correlation=self.launched, thread=thread))
        begin = max(self.free, start + 3 * US)
        self.device.append(kernel(f"kernel_of_{name}", begin, device_us * US, correlation=self.launched))
        self.free, self.now = begin + device_us * US, start + host_us * US

    def step(self, each: int, extra: Extra, types: str | None, again: bool = False) -> None:
        """Train once; the host waits at the end until the device is done."""
        began, first = self.now, self.number
        for _ in range(LAYERS):
            self.run("aten::linear", self.host_us, self.device_us, sequence=self.number, types=types)
            self.number += 1
        for name, host_us, device_us in extra:
            self.run(name, host_us, device_us)
        for _ in range(1 + again):
            for node in range(self.number - 1, first - 1, -1):
                self.run(f"{ENGINE}AddmmBackward0", self.host_us, self.device_us, thread=2, sequence=node)
        if self.free > self.now:
            self.host.append(runtime("cudaDeviceSynchronize", self.now, self.free - self.now))
            self.now = self.free
        self.host.append(step(each, began, self.now - began))


def said(host_us: int, device_us: int, extra: Extra = (), types: str | None = None, again: bool = False) -> Diagnosed:
    job = Job(host_us, device_us)
    for each in range(STEPS):
        job.step(each, extra, types, again)
    return diagnose(analyze(make_trace(job.host, job.device)))


def finding(found: Diagnosed, code: str) -> Finding | None:
    return next((each for each in found.findings if each.code == code), None)


DEVICE_BOUND, HOST_BOUND = (20, 100), (100, 20)


@pytest.mark.parametrize("bound", [DEVICE_BOUND, HOST_BOUND])
def test_a_second_forward_pass_is_named_on_either_chain(bound: tuple[int, int]) -> None:
    plain, twice = said(*bound), said(*bound, [("aten::linear", *bound)] * LAYERS)
    found = finding(twice, "unused-work")
    assert found is not None
    saved = 1 - plain.step.mean_us / twice.step.mean_us  # the same job without it
    assert 0.3 < saved < 0.35
    assert found.gain_at_most >= saved
    assert found.share_of_step == pytest.approx(1 / 3, abs=0.02)
    assert finding(plain, "unused-work") is None


def test_work_of_the_host_that_hides_behind_the_device_is_not_named() -> None:
    hidden = said(20, 100, [("aten::linear", 20, 2)] * LAYERS)
    assert finding(hidden, "unused-work") is None


def test_a_backward_pass_that_runs_twice_is_told_on_its_own_thread() -> None:
    once, twice = said(*DEVICE_BOUND), said(*DEVICE_BOUND, again=True)
    found = finding(twice, "unused-work")
    assert found is not None
    assert "same nodes again" in found.title
    assert found.gain_at_most >= 1 - once.step.mean_us / twice.step.mean_us
    assert finding(once, "unused-work") is None


@pytest.mark.parametrize(("count", "named"), [(2, False), (12, True)])
def test_copies_are_named_by_what_the_device_works(count: int, named: bool) -> None:
    found = finding(said(*DEVICE_BOUND, [("aten::clone", 20, 100)] * count), "needless-copies")
    assert (found is not None) is named
    if found is not None:
        assert found.gain_at_most >= count / (2 * LAYERS + count) - 0.01


def test_copies_that_cost_the_host_alone_are_not_named_where_the_device_is_the_longer_chain() -> None:
    assert finding(said(*DEVICE_BOUND, [("aten::clone", 20, 1)] * 12), "needless-copies") is None


def test_double_precision_is_told_by_what_the_device_works() -> None:
    double, single = '["double"]', '["float"]'
    found = finding(said(*DEVICE_BOUND, types=double), "wrong-dtype")
    assert found is not None
    assert found.share_of_step == pytest.approx(0.5, abs=0.02)  # the nodes of the backward pass carry no types here
    assert finding(said(*DEVICE_BOUND, types=single), "wrong-dtype") is None
    assert finding(said(*HOST_BOUND, types=double), "wrong-dtype") is None


@pytest.mark.parametrize("direction", ["HtoD (Pageable -> Device)", "DtoH (Device -> Pinned)"])
def test_batches_and_values_that_are_read_are_no_needless_copies(direction: str) -> None:
    job = Job(*DEVICE_BOUND)
    for each in range(STEPS):
        job.step(each, [("aten::to", 20, 100)] * 12, None)
    moved = [
        replace(row, name=f"Memcpy {direction}", kind=DeviceKind.MEMCPY) if row.name.endswith("aten::to") else row
        for row in job.device
    ]
    assert finding(diagnose(analyze(make_trace(job.host, moved))), "needless-copies") is None
