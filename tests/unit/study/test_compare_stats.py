"""Intervals and verdicts, against figures computed by other means."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelock.study import stats
from tracelock.study.stats import Sample


def samples(*values: float) -> list[Sample]:
    return [Sample(value) for value in values]


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def every_median(values: tuple[float, ...]) -> list[float]:
    """Return the medians of all n^n resamples: what a bootstrap without chance would give."""
    return [float(np.median(drawn)) for drawn in itertools.product(values, repeat=len(values))]


@pytest.mark.parametrize("values", [(3.0, 1.0, 2.0), (10.0, 11.0, 15.0, 9.0), (1.0, 2.0, 3.0, 4.0, 50.0)])
def test_interval_of_runs_without_steps_is_that_of_all_resamples(values: tuple[float, ...]) -> None:
    found = stats.median_interval(samples(*values), rng())
    low, high = np.quantile(every_median(values), [0.025, 0.975])
    assert found.value == np.median(values)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.26 * (max(values) - min(values)) * 0.1)


def test_interval_of_three_runs_is_their_range() -> None:
    found = stats.median_interval(samples(100.0, 103.0, 99.0), rng())
    assert (found.low, found.value, found.high) == (99.0, 100.0, 103.0)


def test_ratio_interval_of_runs_without_steps_is_that_of_all_pairs_of_resamples() -> None:
    one, other = (50.0, 52.0, 57.0), (100.0, 101.0, 110.0)
    found = stats.ratio_interval(samples(*one), samples(*other), rng())
    ratios = [a / b for a in every_median(one) for b in every_median(other)]
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert found.value == 52 / 101
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


def test_one_run_has_the_interval_of_the_mean_of_its_steps() -> None:
    steps = np.random.default_rng(3).normal(100, 5, 400)
    found = stats.median_interval([Sample(float(steps.mean()), tuple(steps))], rng())
    half = 1.96 * steps.std() / math.sqrt(len(steps))
    assert found.value == steps.mean()
    assert found.low == pytest.approx(steps.mean() - half, abs=0.25 * half)
    assert found.high == pytest.approx(steps.mean() + half, abs=0.25 * half)


def test_steps_that_resemble_their_neighbours_widen_the_interval() -> None:
    slow = np.repeat(np.random.default_rng(4).normal(100, 5, 40), 10)
    shuffled = np.random.default_rng(5).permutation(slow)
    runs = [stats.median_interval([Sample(float(s.mean()), tuple(s))], rng()) for s in (slow, shuffled)]
    assert runs[0].high - runs[0].low > 1.5 * (runs[1].high - runs[1].low)


def test_value_of_a_run_is_kept_where_its_steps_do_not_sum_to_it() -> None:
    found = stats.median_interval([Sample(200.0, (1.0, 1.0, 1.0))], rng())
    assert (found.low, found.value, found.high) == (200.0, 200.0, 200.0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=8), st.floats(0.1, 10))
def test_interval_holds_the_median_stays_in_the_range_and_scales(values: list[float], scale: float) -> None:
    found = stats.median_interval(samples(*values), rng())
    scaled = stats.median_interval(samples(*(value * scale for value in values)), rng())
    assert found.low <= found.value <= found.high
    assert min(values) * (1 - 1e-12) <= found.low
    assert found.high <= max(values) * (1 + 1e-12)  # interpolation of quantiles may round up
    assert (scaled.low, scaled.high) == pytest.approx((found.low * scale, found.high * scale))


def test_same_seed_and_names_give_the_same_interval_and_others_another() -> None:
    steps = tuple(np.random.default_rng(3).normal(100, 5, 30))
    run = [Sample(float(np.mean(steps)), steps)]
    same = [stats.median_interval(run, stats.generator(1, "a", "b")) for _ in range(2)]
    assert same[0] == same[1]
    assert stats.median_interval(run, stats.generator(2, "a", "b")) != same[0]
    assert stats.median_interval(run, stats.generator(1, "ab", "")) != same[0]


def test_welch_p_of_the_textbook() -> None:
    """t and degrees of freedom by Welch's formulas, the tail by numeric integration of Student's density."""
    one, other = samples(27.5, 21.0, 19.0, 23.6), samples(27.1, 22.0, 20.8, 23.4, 23.4)
    a, b = (np.log([run.value for run in runs]) for runs in (one, other))
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    t = abs(a.mean() - b.mean()) / math.sqrt(va + vb)
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    x = np.linspace(-t, t, 200_001)
    density = (
        math.gamma((df + 1) / 2) / math.sqrt(df * math.pi) / math.gamma(df / 2) * (1 + x**2 / df) ** (-(df + 1) / 2)
    )
    assert stats.welch_p(one, other) == pytest.approx(1 - np.trapezoid(density, x), abs=1e-9)


@pytest.mark.parametrize(
    ("ours", "reference", "verdict"),
    [
        ((50, 51, 52), (100, 101, 99), "faster"),
        ((100, 101, 99), (50, 51, 52), "slower"),
        ((100, 101, 99), (100, 102, 98), "no clear difference"),
        ((100.5, 100.6, 100.7), (100, 100.1, 99.9), "no clear difference"),  # certain, and too small to matter
        ((80, 95, 110), (100, 120, 130), "no clear difference"),  # looks large, and is not certain
        ((5, 5, 5), (10, 10, 10), "faster"),
        ((10, 10, 10), (10, 10, 10), "no clear difference"),
    ],
)
def test_verdict(ours: tuple[float, ...], reference: tuple[float, ...], verdict: str) -> None:
    found = stats.difference(samples(*ours), samples(*reference), rng())
    assert found.verdict == verdict
    assert bool(found.why) == (verdict == "no clear difference")


@pytest.mark.parametrize(("ours", "reference"), [((50,), (100, 101)), ((50, 51), (100,)), ((50,), (100,))])
def test_a_single_run_is_not_judged(ours: tuple[float, ...], reference: tuple[float, ...]) -> None:
    found = stats.difference(samples(*ours), samples(*reference), rng())
    assert (found.verdict, found.p_value) == (None, None)
    assert "single run" in found.why
    assert found.ratio.value == pytest.approx(np.median(ours) / np.median(reference))


def simulated(chance: np.random.Generator, runs: int, mean: float) -> list[Sample]:
    """Return runs that differ by 2 % and whose steps differ by 5 %."""
    made = []
    for _ in range(runs):
        steps = mean * math.exp(chance.normal(0, 0.02)) * (1 + chance.normal(0, 0.05, 20))
        made.append(Sample(float(steps.mean()), tuple(steps)))
    return made


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_equal_variants_are_seldom_called_different(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 999)
    monkeypatch.setattr(stats, "_WITHIN", 200)
    chance = np.random.default_rng(runs)
    alarms = sum(
        stats.difference(simulated(chance, runs, 100), simulated(chance, runs, 100), chance, 0.0).verdict
        in ("faster", "slower")
        for _ in range(150)
    )
    assert alarms <= 0.05 * 150 + 4  # two standard deviations of chance


def test_a_tenth_is_mostly_found_with_three_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 999)
    monkeypatch.setattr(stats, "_WITHIN", 200)
    chance = np.random.default_rng(1)
    found = [stats.difference(simulated(chance, 3, 110), simulated(chance, 3, 100), chance) for _ in range(100)]
    assert sum(one.verdict == "slower" for one in found) >= 75
    assert not any(one.verdict == "faster" for one in found)


def test_coverage_of_the_range() -> None:
    """The true median lies outside the range of n runs only if all lie on one side of it."""
    assert [stats.range_coverage(runs) for runs in (1, 2, 3, 6)] == [0.0, 0.5, 0.75, 0.96875]
