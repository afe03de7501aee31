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
from tracelock.study.verdicts import adjusted, difference, holm


def samples(*values: float) -> list[Sample]:
    return [Sample(value) for value in values]


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def every_median(values: tuple[float, ...]) -> list[float]:
    """Return the medians of all n^n resamples: what a bootstrap without chance would give."""
    return [float(np.median(drawn)) for drawn in itertools.product(values, repeat=len(values))]


SEVEN = (10.0, 11.0, 15.0, 9.0, 10.5, 10.2, 12.0)


def test_interval_of_enough_runs_without_steps_is_that_of_all_resamples() -> None:
    values = SEVEN[:6]
    found = stats.median_interval(samples(*values), rng())
    low, high = np.quantile(every_median(values), [0.025, 0.975])
    assert found.value == np.median(values)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.15)


def test_interval_of_three_runs_is_student_s_of_their_logarithms() -> None:
    """t = 4.3027 for two degrees of freedom, from a printed table."""
    values = (100.0, 103.0, 99.0)
    logs = np.log(values)
    half = 4.30265 * logs.std(ddof=1) / math.sqrt(3)
    found = stats.median_interval(samples(*values), rng())
    assert found.value == 100.0
    assert (found.low, found.high) == pytest.approx((math.exp(logs.mean() - half), math.exp(logs.mean() + half)))


def test_interval_of_few_runs_holds_that_of_all_resamples() -> None:
    one, other = (50.0, 52.0, 57.0), (100.0, 101.0, 110.0)
    found = stats.ratio_interval(samples(*one), samples(*other), rng())
    ratios = [a / b for a in every_median(one) for b in every_median(other)]
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert found.value == 52 / 101
    assert found.low <= low <= high <= found.high


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_what_its_definition_says(values: list[float]) -> None:
    """Brute force: the adjusted p is the least level at which the step-down procedure rejects."""

    def rejected(level: float) -> set[int]:
        order = sorted(range(len(values)), key=lambda index: values[index])
        kept = []
        for rank, index in enumerate(order):
            if values[index] > level / (len(values) - rank):
                break
            kept.append(index)
        return set(kept)

    for index, level in enumerate(holm(values)):
        assert index in rejected(level * (1 + 1e-9) + 1e-12) or level == 1.0
        assert level == 0.0 or index not in rejected(level * (1 - 1e-9) - 1e-12)


def test_the_order_of_three_runs_against_three_cannot_give_a_small_p() -> None:
    found = difference(samples(50, 51, 52), samples(100, 101, 99), rng())
    assert found.p_smallest == 2 / 20
    assert found.p_permutation == pytest.approx(0.1)
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert "cannot give less than p = 0.10" in found.strength
    assert "0.0" not in found.strength  # no p of the t-test as if it were strong evidence
    many = difference(samples(*range(50, 56)), samples(*range(100, 106)), rng())
    assert many.p_smallest == 2 / math.comb(12, 6)
    assert "permutation test" in many.strength


def test_among_many_equal_variants_the_one_that_stands_out_is_not_called_faster() -> None:
    lucky = difference(samples(96, 97, 95.8), samples(100, 101, 99), rng())
    assert lucky.verdict == "faster"
    others = [difference(samples(100, 101.2, 99 + n / 10), samples(100, 101, 99), rng()) for n in range(19)]
    found = adjusted([lucky, *others])
    assert found[0].verdict == "unclear"
    assert "among 20 comparisons" in found[0].why


def test_no_difference_is_shown_and_not_merely_not_found() -> None:
    quiet = difference(samples(100, 100.2, 99.8, 100.1), samples(100.1, 99.9, 100, 100.2), rng())
    noisy = difference(samples(100, 108, 92, 101), samples(101, 92, 107, 99), rng())
    assert quiet.verdict == "no difference"
    assert quiet.at_most is not None
    assert quiet.at_most < 0.02
    assert quiet.words.startswith("no difference larger than 0.")
    assert noisy.verdict == "unclear"
    assert noisy.at_most is not None
    assert noisy.at_most > 0.02


def test_the_number_of_further_runs_is_one_that_tells() -> None:
    """Simulated: with so many more runs a difference of that size is told in about four of five studies."""
    ours, reference = samples(90, 99, 94), samples(100, 105, 98)
    found = difference(ours, reference, rng())
    assert found.verdict == "unclear"
    assert found.more_runs is not None
    runs = 3 + found.more_runs
    logs = [np.log([run.value for run in side]) for side in (ours, reference)]
    spread = math.sqrt(sum(side.var(ddof=1) for side in logs) / 2)
    chance = np.random.default_rng(2)
    gap = float(logs[0].mean() - logs[1].mean())
    told = 0
    for _ in range(300):
        made = [samples(*np.exp(chance.normal(mean, spread, runs))) for mean in (gap, 0.0)]
        told += stats.two_samples(*made).p_value <= 0.05
    assert 0.7 <= told / 300 <= 0.95


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
def test_interval_holds_the_median_and_scales(values: list[float], scale: float) -> None:
    found = stats.median_interval(samples(*values), rng())
    scaled = stats.median_interval(samples(*(value * scale for value in values)), rng())
    assert found.low <= found.value <= found.high
    if len(values) >= stats.ENOUGH_RUNS:
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
    assert stats.two_samples(one, other).p_value == pytest.approx(1 - np.trapezoid(density, x), abs=1e-9)


@pytest.mark.parametrize(
    ("ours", "reference", "verdict"),
    [
        ((50, 51, 52), (100, 101, 99), "faster"),
        ((100, 101, 99), (50, 51, 52), "slower"),
        ((100, 101, 99), (100, 102, 98), "unclear"),
        ((100.5, 100.6, 100.7), (100, 100.1, 99.9), "no difference"),  # certain, and too small to matter
        ((80, 95, 110), (100, 120, 130), "unclear"),  # looks large, and is not certain
        ((5, 5, 5), (10, 10, 10), "faster"),
        ((10, 10, 10), (10, 10, 10), "no difference"),
    ],
)
def test_verdict(ours: tuple[float, ...], reference: tuple[float, ...], verdict: str) -> None:
    found = difference(samples(*ours), samples(*reference), rng())
    assert found.verdict == verdict
    assert bool(found.why) == (verdict in ("no difference", "unclear"))


@pytest.mark.parametrize(("ours", "reference"), [((50,), (100, 101)), ((50, 51), (100,)), ((50,), (100,))])
def test_a_single_run_is_not_judged(ours: tuple[float, ...], reference: tuple[float, ...]) -> None:
    found = difference(samples(*ours), samples(*reference), rng())
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
        difference(simulated(chance, runs, 100), simulated(chance, runs, 100), chance, 0.0).verdict
        in ("faster", "slower")
        for _ in range(150)
    )
    assert alarms <= 0.05 * 150 + 4  # two standard deviations of chance


def test_a_tenth_is_mostly_found_with_three_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 999)
    monkeypatch.setattr(stats, "_WITHIN", 200)
    chance = np.random.default_rng(1)
    found = [difference(simulated(chance, 3, 110), simulated(chance, 3, 100), chance) for _ in range(100)]
    assert sum(one.verdict == "slower" for one in found) >= 75
    assert not any(one.verdict == "faster" for one in found)


def test_coverage_of_the_range() -> None:
    """The true median lies outside the range of n runs only if all lie on one side of it."""
    assert [stats.range_coverage(runs) for runs in (1, 2, 3, 6)] == [0.0, 0.5, 0.75, 0.96875]
