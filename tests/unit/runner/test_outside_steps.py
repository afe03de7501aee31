"""Which optimizer calls end a step, and when the warm-up is over: rules without torch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.runner.outside.schedule import is_steady, plan
from tracelock.runner.outside.steps import Pilot


def steps_of(calls: str) -> int:
    pilot = Pilot()
    return sum(pilot.stepped(ord(name)) for name in calls)


@pytest.mark.parametrize(
    ("calls", "steps"),
    [
        ("A" * 7, 7),
        ("AB" * 7, 7),  # in turn
        ("ABC" * 7, 7),
        ("AAAAAB" * 3, 15),  # a critic, five times as often
        ("A" * 5 + "B" * 6, 11),  # one phase after the other
        ("AAAA" + "AB" * 6, 10),  # a second one joins
        ("A", 1),
    ],
)
def test_steps_of_calls(calls: str, steps: int) -> None:
    assert steps_of(calls) == steps


@given(st.integers(1, 60), st.integers(1, 40))
def test_one_optimizer_a_parameter_is_one_step_a_cycle(parameters: int, cycles: int) -> None:
    pilot = Pilot()
    assert sum(pilot.stepped(key) for _ in range(cycles) for key in range(parameters)) == cycles


def test_the_last_of_a_cycle_ends_the_step() -> None:
    pilot = Pilot()
    ends = [key for key in "DGDGDG" if pilot.stepped(ord(key))]
    assert ends == ["D", "G", "G"]  # the first step's end moves from D to G unseen: it is warm-up


def test_warm_up_ends_when_steps_no_longer_get_faster() -> None:
    assert not is_steady([9.0, 1.0])
    assert not is_steady([9.0, 4.0, 2.0])
    assert is_steady([9.0, 1.0, 1.1])
    assert not is_steady([64.0, 32.0, 16.0, 8.0, 4.0, 2.0])
    assert is_steady([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    assert is_steady([2.0**-n for n in range(50)])


def test_short_epochs_are_timed_and_recorded_whole() -> None:
    schedule = plan(3, 0.01, 5, None, None)
    assert (schedule.window - schedule.timed, schedule.end - schedule.window) == (5, 6)
    assert schedule.end <= 15


@given(st.integers(3, 50), st.floats(1e-4, 100), st.one_of(st.none(), st.integers(1, 5000)))
def test_a_plan_times_and_records_something(done: int, step_s: float, epoch: int | None) -> None:
    schedule = plan(done, step_s, epoch, None, None)
    assert done == schedule.timed < schedule.window < schedule.end
    assert schedule.end - schedule.window >= 2
