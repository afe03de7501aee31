"""Work that is not needed, in traces made by hand: loops that only copy, and several causes in one step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from builders import Host, make_trace, op, step
from unit.diagnosis.cases import analysis, breakdown, costs

from tracelock.analysis.analyze import analyze
from tracelock.analysis.costs import Pause
from tracelock.analysis.work import Copies, Unused, Work
from tracelock.diagnosis import Diagnosed, diagnose

US = 1000


def in_steps(turn: Sequence[str], turns: int, us: int = 20) -> Diagnosed:
    """Return what is said of four steps, each of twenty layers, and a loop of `turn` with no gap between."""
    rows: list[Host] = []
    at = 0
    for number in range(4):
        began = at
        names = [name for _ in range(10) for name in ("aten::linear", "aten::relu")]
        for name, length in [*((name, 200) for name in names), *((name, us) for name in [*turn] * turns)]:
            rows.append(op(name, at, length * US))
            at += length * US
        rows.append(step(number, began, at - began))
    return diagnose(analyze(make_trace(rows)))


def codes(found: Diagnosed) -> list[str]:
    return [each.code for each in found.findings]


@pytest.mark.parametrize(
    "turn",
    [
        ("aten::to",),
        ("aten::clone",),
        ("aten::transpose", "aten::contiguous"),
        ("aten::to", "aten::to"),
        ("aten::empty", "aten::set_", "aten::copy_", "aten::detach"),  # copy.deepcopy of a state_dict
    ],
)
def test_a_loop_that_only_copies_is_copying(turn: tuple[str, ...]) -> None:
    found = in_steps(turn, turns=200 // len(turn))
    assert codes(found) == ["needless-copies"]
    assert found.findings[0].share_of_step == pytest.approx(0.5, abs=0.01)  # all of the loop, not its copies alone
    assert found.findings[0].gain_at_most >= 0.5


@pytest.mark.parametrize("turn", [("aten::select", "aten::mul"), ("aten::to", "aten::add"), ("aten::detach",)])
def test_a_loop_that_does_more_is_a_loop(turn: tuple[str, ...]) -> None:
    assert codes(in_steps(turn, turns=200 // len(turn))) == ["frequent-operator"]


def test_what_comes_third_is_named_though_bounds_fill_the_step() -> None:
    """Bounds assume that all of the profiler's time lies elsewhere; of three causes they exceed the step."""
    spent = (("clone", 3_500.0), ("contiguous", 10.0))
    work = Work(
        operators_us=9_000.0,
        between_us=0.0,
        between=0,
        excess_us=0.0,
        backward_us=1_000.0,
        loops=(),
        copies=tuple(Copies(kind, 10.0, us, ()) for kind, us in spent),  # type: ignore[arg-type]
        unused=(Unused("forward", 20.0, 8, 1_500.0, ("aten::linear",), ()),),
        double_us=0.0,
        embedding_us=0.0,
        python=None,
    )
    pause = Pause(None, 8, 3_500.0, (), returning_us=3_500.0)
    made = analysis(breakdown(cpu_op=10_000.0), steps=8, costs=costs(10_000.0, pauses=(pause,)), work=work)
    found = diagnose(made, run={"profiled": {"overhead_ratio": 1.8}})
    assert sorted(codes(found)) == ["needless-copies", "step-gaps", "unused-work"]
    assert codes(found)[-1] == "unused-work"
    assert sum(each.gain_estimate or 0.0 for each in found.findings) <= 1.0
