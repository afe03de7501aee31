"""Main effects and interactions over a grid, against values by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.effects import Effect, case_time, interactions, main_effects, metric

TIMES = {(0, "off"): 100.0, (2, "off"): 60.0, (4, "off"): 50.0, (0, "bf16"): 80.0, (2, "bf16"): 24.0}


def study(folder: Path, times: dict[tuple[int, str], float]) -> Comparison:
    """Return a study whose runs take exactly these times, in ms."""
    variants = [
        Variant({"num_workers": workers, "amp": amp}, step_us=1000 * time, scatter=0.0, samples_per_step=None)
        for (workers, amp), time in times.items()
    ]
    return compare(StudyTree(variants, repeats=2).write(folder))


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return study(tmp_path_factory.mktemp("grid"), TIMES)


def _by_value(effects: tuple[Effect, ...]) -> dict[tuple[str, object], Effect]:
    return {(each.factor, each.value): each for each in effects}


def test_a_value_is_compared_in_each_context_that_has_both(grid: Comparison) -> None:
    assert metric(grid) == "step time"
    found = _by_value(main_effects(grid, "default"))
    two, four, half = found["num_workers", 2], found["num_workers", 4], found["amp", "bf16"]
    assert (two.least, two.most) == pytest.approx((0.3, 0.6))
    assert (two.ratio, two.contexts) == (pytest.approx((0.6 * 0.3) ** 0.5), 2)
    assert (four.ratio, four.contexts) == (pytest.approx(0.5), 1)
    assert (half.ratio, half.contexts) == (pytest.approx((0.8 * 0.4) ** 0.5), 2)
    assert {each.reference for each in (two, four)} == {0}


def test_an_interaction_is_what_both_do_beyond_each_alone(grid: Comparison) -> None:
    (found,) = interactions(grid, "default")
    assert set(found.factors) == {"num_workers", "amp"}
    assert found.together == pytest.approx(0.24)
    assert found.expected == pytest.approx(0.6 * 0.8)
    assert found.factor == pytest.approx(0.5)


def test_factors_that_act_independently_have_none(tmp_path: Path) -> None:
    times = {(0, "off"): 100.0, (2, "off"): 50.0, (0, "bf16"): 60.0, (2, "bf16"): 30.0}
    (found,) = interactions(study(tmp_path, times), "default")
    assert found.factor == pytest.approx(1.0)


def test_cases_without_runs_and_other_environments_count_nowhere(grid: Comparison) -> None:
    assert main_effects(grid, "elsewhere") == ()
    assert interactions(grid, "elsewhere") == ()
    assert all(case_time(case, "time per sample") is None for case in grid.cases)
