"""Gaps that are the program's own, told from times in which another program had its core."""

from __future__ import annotations

from typing import Any

import pytest
from builders import Host, make_trace, op, step
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.analyze import analyze
from tracelock.analysis.recurrence import is_periodic
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.model import Finding

US = 1000
STEPS, OPERATORS = 8, 60
NAMES = ("aten::linear", "aten::relu", "aten::add", "aten::mul", "aten::softmax", "aten::dropout")


def recorded(gaps: dict[int, list[tuple[int, int]]]) -> Any:
    """Return the analysis of eight steps of sixty operators of 100 µs, with gaps: step -> (operator before it, µs)."""
    rows: list[Host] = []
    at = 0
    for number in range(STEPS):
        began = at
        for place in range(OPERATORS):
            rows.append(op(NAMES[place % len(NAMES)], at + 2 * US, 98 * US))
            at += 100 * US + sum(us for before, us in gaps.get(number, []) if before == place) * US
        rows.append(step(number, began, at - began))
    return analyze(make_trace(rows))


def facts(gap_us: float, queued_us: float, timed_us: float) -> dict[str, Any]:
    """Return what a run says: recorded steps with a gap of `gap_us`, of which other programs took `queued_us`."""
    recorded_us = 100.0 * OPERATORS + gap_us
    return {
        "timed": {"step_us": [timed_us] * 24},
        "profiled": {"queued_us": [queued_us] * STEPS, "overhead_ratio": recorded_us / timed_us},
    }


def gaps(found: Diagnosed) -> Finding | None:
    return next((each for each in found.findings if each.code == "step-gaps"), None)


@pytest.mark.parametrize("every", [1, 2, 3, 4])
def test_a_gap_at_one_place_of_every_kth_step_is_the_programs_own(every: int) -> None:
    traced = recorded({number: [(41, 3000 * every)] for number in range(0, STEPS, every)})
    (pause,) = traced.costs.pauses
    assert pause.returning_us == pytest.approx(pause.host_us)
    found = gaps(diagnose(traced))
    assert found is not None
    assert found.confidence == ("high" if every == 1 else "medium")
    assert found.gain_at_most >= pause.host_us / traced.step.mean_us - 0.001


@given(st.lists(st.integers(0, OPERATORS - 1), min_size=STEPS, max_size=STEPS, unique=True))
def test_gaps_that_roam_are_no_cause(places: list[int]) -> None:
    found = diagnose(recorded({number: [(place, 3000)] for number, place in enumerate(places)}))
    assert gaps(found) is None
    assert all(each.code != "python-time" for each in found.findings)


def test_gaps_that_roam_are_the_programs_own_where_no_other_had_its_core() -> None:
    traced = recorded({number: [(7 * number, 3000)] for number in range(STEPS)})
    alone = gaps(diagnose(traced, run=facts(3000, queued_us=20.0, timed_us=9000.0)))
    disturbed = gaps(diagnose(traced, run=facts(3000, queued_us=2900.0, timed_us=9000.0)))
    assert alone is not None
    assert alone.confidence == "high"
    assert disturbed is None


def test_high_confidence_needs_gaps_that_the_timed_steps_hold_too() -> None:
    traced = recorded({number: [(41, 3000)] for number in range(STEPS)})
    both = gaps(diagnose(traced, run=facts(3000, queued_us=0.0, timed_us=9000.0)))
    profiled_alone = gaps(diagnose(traced, run=facts(3000, queued_us=0.0, timed_us=6500.0)))
    others = gaps(diagnose(traced, run=facts(3000, queued_us=2000.0, timed_us=9000.0)))
    assert both is not None
    assert profiled_alone is not None
    assert others is not None
    assert (both.confidence, profiled_alone.confidence, others.confidence) == ("high", "medium", "medium")


@pytest.mark.parametrize(
    ("found", "steps", "periodic"),
    [
        ((0, 2, 4, 6), 8, True),
        ((1, 4, 7), 8, True),
        ((3, 7), 8, True),
        ((2, 5), 8, True),
        ((0, 1, 5), 8, False),
        ((4,), 8, False),
        ((0, 3), 8, False),  # 6 is missing
    ],
)
def test_what_comes_every_kth_step_is_told_by_its_distances(found: tuple[int, ...], steps: int, periodic: bool) -> None:
    assert is_periodic(found, steps) is periodic
