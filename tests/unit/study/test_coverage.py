"""A small sample of the simulation whose table stands in docs/measurements.md: bounds that 2,000 studies hold well."""

from __future__ import annotations

import pytest
from bench import coverage

from tracelock.study import stats, verdicts


@pytest.mark.parametrize("world", ["all"])
def test_intervals_hold_and_equal_variants_are_seldom_called_different(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 499)
    monkeypatch.setattr(stats, "_WITHIN", 100)
    monkeypatch.setattr(verdicts, "permutation_p", lambda *_: 1.0)
    found = coverage.simulate(world, runs=3, studies=60, seed=2)
    assert found.median_covered >= 0.95 - 0.085  # three standard deviations of sixty studies
    assert found.ratio_covered >= 0.95 - 0.085
    assert found.any_alarm <= 0.05 + 0.085
