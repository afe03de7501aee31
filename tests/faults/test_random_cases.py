"""Workloads composed at random: the same each time, runnable, and graded by what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracelock.faults.composed.collection import Said, grade
from tracelock.faults.composed.job import MAKERS, Job
from tracelock.faults.composed.mutations import BY_NAME, MUTATIONS
from tracelock.faults.composed.plan import draw


def case(costs: dict[str, float], codes: tuple[str, ...], bound: float | None = None, confidence: str = "high") -> Said:
    return Said(0, costs, True, codes, (bound,) * len(codes), (bound,) * len(codes), confidence)


def test_a_case_is_the_same_each_time_and_cases_differ() -> None:
    assert draw(7) == draw(7)
    assert len({draw(seed) for seed in range(40)}) == 40
    drawn = {name for seed in range(600) for name, _ in draw(seed).faults}
    assert drawn == set(BY_NAME)
    assert any(not draw(seed).faults for seed in range(40))


def test_there_are_forty_faults_and_each_can_be_switched_on() -> None:
    assert len(MUTATIONS) >= 40
    assert set(MAKERS) == set(BY_NAME)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_fault_runs(mutation: object) -> None:
    name, networks = mutation.name, mutation.networks  # type: ignore[attr-defined]
    plan = draw(1)
    network = networks[0] if networks else "mlp"
    plan = replace(plan, network=network, width=16, depth=2, batch=4, loader="dataset", faults=((name, 1.0),))
    job = Job(plan, {name: 1.0})
    for _ in range(4):
        job.step()
    job.close()
    assert job.steps == 4


def test_a_fault_that_costs_and_is_named_is_right() -> None:
    found = grade([case({"sleep in the log": 0.3}, ("python-time",), 0.35)])
    assert found["right"] == found["bound_held"] == found["high_confidence_right"] == 1.0
    assert found["wrong"] == found["silent_high"] == 0.0


def test_a_bound_below_the_cost_does_not_hold() -> None:
    assert grade([case({"sleep in the log": 0.3}, ("python-time",), 0.2)])["bound_held"] == 0.0


def test_silence_with_high_confidence_is_told_from_a_wrong_name() -> None:
    silent = case({"clones of activations": 0.3}, ("no-bottleneck",))
    wrong = case({"clones of activations": 0.3}, ("step-gaps",))
    doubtful = case({"clones of activations": 0.3}, ("no-bottleneck",), confidence="medium")
    found = grade([silent, wrong, doubtful])
    assert found["faults"] == 3
    assert found["right"] == 0.0
    assert found["wrong"] == found["silent_high"] == pytest.approx(1 / 3)


def test_a_cause_where_nothing_costs_is_a_false_alarm(tmp_path: Path) -> None:
    found = grade([case({"loader": 0.01}, ("step-gaps",)), case({"loader": 0.02}, ("no-bottleneck",))])
    assert found["healthy"] == 2
    assert found["false_alarms"] == 0.5
    assert found["right"] is None


def test_what_is_not_clear_is_not_graded() -> None:
    unclear = replace(case({"clones of activations": 0.1}, ("step-gaps",)), clear=False)
    assert grade([unclear])["faults"] == 0
