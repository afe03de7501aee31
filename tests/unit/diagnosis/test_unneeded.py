"""Operators that no gradient needs, told by the numbers that join both passes; and work of every k-th step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from builders import Host, frame, make_trace, op, step
from unit.diagnosis.cases import analysis, breakdown, costs

from tracelock.analysis.analyze import analyze
from tracelock.analysis.costs import Updating
from tracelock.analysis.work import Unused, Work
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.model import Finding

US = 1000
NODE = "autograd::engine::evaluate_function: "
LAYERS = 10
Extra = Sequence[tuple[str, int]]  # name, µs


def trained(steps: int, extra: dict[int, Extra], extra_frame: str | None = None) -> Diagnosed:
    """Return what is said of steps of ten layers and their backward pass, 100 µs each, with more in front of the loss.

    What stands there carries the number of the loss, as PyTorch writes it: the number of the node that is made next.
    """
    rows: list[Host] = []
    at, number = 0, 0
    for each in range(steps):
        began, first = at, number
        for _ in range(LAYERS):
            rows.append(op("aten::linear", at, 100 * US, sequence=number))
            at, number = at + 100 * US, number + 1
        for name, length in extra.get(each, ()):
            rows.append(op(name, at, length * US, sequence=number))
            at += length * US
        if extra_frame:
            rows += [frame("train.py(9): step", at, 400 * US), frame(extra_frame, at + US, 398 * US)]
            at += 400 * US
        rows.append(op("aten::cross_entropy_loss", at, 20 * US, sequence=number))
        at += 20 * US
        for node in range(number, first - 1, -1):
            rows.append(op(f"{NODE}AddmmBackward0", at, 100 * US, sequence=node))
            rows.append(op("AddmmBackward0", at + US, 90 * US, sequence=node))
            at += 100 * US
        number += 1
        rows.append(step(each, began, at - began))
    return diagnose(analyze(make_trace(rows)))


def finding(found: Diagnosed, code: str) -> Finding | None:
    return next((each for each in found.findings if each.code == code), None)


@pytest.mark.parametrize(
    "extra", [("aten::scatter_add_", "aten::cumsum"), ("aten::triu",), ("aten::bernoulli_", "aten::mul")]
)
def test_what_carries_the_number_of_another_is_needed_by_no_gradient(extra: tuple[str, ...]) -> None:
    shown = [(name, 600 // len(extra)) for name in extra]
    found = finding(trained(8, dict.fromkeys(range(8), shown)), "unused-work")
    assert found is not None
    assert "no gradient goes through" in found.title
    assert found.share_of_step == pytest.approx(600 / (600 + 2120), abs=0.01)


def test_what_makes_a_node_itself_is_needed() -> None:
    assert finding(trained(8, {}), "unused-work") is None
    little = {number: [("aten::triu", 100)] for number in range(8)}  # a mask: 4.5 % of the step
    assert finding(trained(8, little), "unused-work") is None


@pytest.mark.parametrize("every", [2, 3, 4])
def test_validation_of_every_kth_step_counts_as_a_kth(every: int) -> None:
    layers = [("aten::linear", 100)] * 12
    found = trained(8, dict.fromkeys(range(1, 8, every), layers))
    named = finding(found, "unused-work")
    assert named is not None
    assert f"every {every}" in named.title
    taken = 1200 / every / found.step.mean_us
    assert named.share_of_step == pytest.approx(taken, abs=0.005)
    assert named.gain_at_most >= taken / (taken + 2120 / found.step.mean_us)  # of the long run's mean step
    assert finding(found, "step-gaps") is None


@pytest.mark.parametrize(
    "call", ["<built-in method full of type object at 0x7f>", "<built-in method item of Tensor object at 0x1>"]
)
def test_a_call_of_pytorch_is_not_pure_python(call: str) -> None:
    found = finding(trained(8, {}, extra_frame=call), "python-time")
    assert found is not None
    assert "pure Python" not in found.title
    assert "PyTorch" in found.title


def busy(**known: object) -> Work:
    """Return a step of 10 ms in which operators work all the time."""
    made = Work(10_000.0, 0.0, 0, 0.0, 3_000.0, (), (), (), 0.0, 0.0, None)
    return replace(made, **known)  # type: ignore[arg-type]


def test_an_optimizer_in_one_call_still_updates() -> None:
    """Of 47 % one by one a real loop got 15 % back, another of 21 % got 5 %."""
    one_by_one = Updating(4_700.0, 600.0, True, 0.0, None, 0.0)
    made = analysis(breakdown(cpu_op=10_000.0), costs=costs(10_000.0, optimizer=one_by_one), work=busy())
    found = finding(diagnose(made), "optimizer-bound")
    assert found is not None
    assert 0.15 <= found.gain_at_most < 0.47
    assert found.gain_estimate == pytest.approx(0.15, abs=0.03)


def test_stacks_that_anomaly_detection_writes_inside_of_operators_are_in_its_bound() -> None:
    checks = Unused("anomaly", 24.0, 4, 220.0, ("aten::isnan", "aten::any", "aten::item"), ())
    made = analysis(breakdown(cpu_op=10_000.0), costs=costs(10_000.0), work=busy(unused=(checks,)))
    found = finding(diagnose(made), "anomaly-detection")
    assert found is not None
    assert found.gain_at_most == pytest.approx((220 + 8 * 300) / 10_000)
    assert 0.05 < found.gain_estimate < found.gain_at_most
