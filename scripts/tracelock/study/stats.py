"""Medians over runs, their uncertainty, and what may be said about a difference.

What is resampled: the runs of a variant, with replacement, and inside each drawn run blocks of consecutive steps
(steps are not independent of their neighbours: workers fetch ahead, clocks drift). The interval is the percentile
interval of `scipy.stats.bootstrap`. Two variants are resampled independently of each other.

What few runs can say: the percentile interval of a median of n runs hardly leaves their range, and the range holds
the true median with probability 1 - 2^(1-n): 75 % for 3 runs, 94 % for 5, 97 % for 6. The verdict on a difference
therefore asks for more than an interval that misses 1: Welch's t-test on the logarithms of the runs must agree, and
the difference must matter.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.stats

Verdict: TypeAlias = Literal["faster", "slower", "no clear difference"]
Floats: TypeAlias = npt.NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 9_999
MIN_EFFECT = 0.02  # a difference below 2 % does not repay a change; timers and clocks alone bring about as much
_WITHIN = 2_000  # resampled means kept of each run


@dataclass(frozen=True)
class Sample:
    """One run: its value (any unit) and the steps behind it, shape (steps,); steps may be empty."""

    value: float
    steps: Sequence[float] = ()


@dataclass(frozen=True)
class Interval:
    """A figure and the interval around it, in the unit of the figure."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Variant against reference: `ratio` of their medians (below 1: less time), and what may be said about it."""

    ratio: Interval
    p_value: float | None
    verdict: Verdict | None
    why: str  # why there is no verdict, or which condition kept it from being clear; else empty


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return a random generator that depends on the seed and the names alone."""
    key = hashlib.sha256("\0".join(names).encode()).digest()[:8]
    return np.random.default_rng([seed, int.from_bytes(key, "big")])


def range_coverage(runs: int) -> float:
    """Return the probability that the range of `runs` independent runs holds the true median: 1 - 2^(1-n)."""
    return 1.0 - 2.0 ** (1 - runs)


def median_interval(samples: Sequence[Sample], rng: np.random.Generator) -> Interval:
    """Return the median of the runs' values and its bootstrap interval.

    Raises
    ------
    ValueError
        If there is no run.
    """
    value = float(np.median([sample.value for sample in samples]))
    low, high = _bootstrap([samples], lambda medians: medians[0], rng)
    return _around(value, low, high)


def ratio_interval(samples: Sequence[Sample], reference: Sequence[Sample], rng: np.random.Generator) -> Interval:
    """Return the ratio of the medians of two sets of runs and its bootstrap interval."""
    value = float(np.median([run.value for run in samples]) / np.median([run.value for run in reference]))
    low, high = _bootstrap([samples, reference], lambda medians: medians[0] / medians[1], rng)
    return _around(value, low, high)


def difference(
    samples: Sequence[Sample],
    reference: Sequence[Sample],
    rng: np.random.Generator,
    min_effect: float = MIN_EFFECT,
) -> Difference:
    """Compare the times of two sets of runs.

    Parameters
    ----------
    min_effect
        Smallest part of the reference's time that counts as a difference.
    """
    ratio = ratio_interval(samples, reference, rng)
    few = min(len(samples), len(reference))
    if few < 2:
        return Difference(ratio, None, None, "a single run says nothing about how much runs differ; repeat it")
    p_value = welch_p(samples, reference)
    why = _unclear(ratio, p_value, min_effect)
    if why:
        return Difference(ratio, p_value, "no clear difference", why)
    return Difference(ratio, p_value, "faster" if ratio.value < 1 else "slower", "")


def welch_p(samples: Sequence[Sample], reference: Sequence[Sample]) -> float:
    """Return the two-sided p-value of Welch's t-test on the logarithms of the runs' values.

    Logarithms, because runs scatter in proportion to their time and the question is about a ratio.
    """
    logs = [np.log([run.value for run in runs]) for runs in (samples, reference)]
    if all(np.ptp(values) == 0 for values in logs):
        return 1.0 if logs[0][0] == logs[1][0] else 0.0
    return float(scipy.stats.ttest_ind(logs[0], logs[1], equal_var=False).pvalue)


def _around(value: float, low: float, high: float) -> Interval:
    """Return an interval that holds its figure, from which interpolated quantiles may differ in the last digit."""
    return Interval(value, min(low, value), max(high, value))


def _unclear(ratio: Interval, p_value: float, min_effect: float) -> str:
    if ratio.low <= 1.0 <= ratio.high:
        return "the interval of the ratio holds 1"
    if p_value > 1 - CONFIDENCE:
        return f"so few runs differ as much by chance too often (p = {p_value:.2f})"
    if abs(ratio.value - 1) < min_effect:
        return f"the difference is below {100 * min_effect:.3g} % and would not repay a change"
    return ""


def _bootstrap(groups: Sequence[Sequence[Sample]], combine: Any, rng: np.random.Generator) -> tuple[float, float]:
    """Return the percentile interval of ``combine([median of each group])``."""
    pools = [np.stack([_within(sample, rng) for sample in runs]) for runs in groups]

    def statistic(*drawn: npt.NDArray[np.int64], axis: int) -> Floats:
        return np.asarray(combine([_medians(pool, runs, rng, axis) for pool, runs in zip(pools, drawn, strict=True)]))

    # scipy asks for two observations; a group of one run lists it twice and takes one of the two draws.
    data = tuple(np.arange(max(len(runs), 2)) % len(runs) for runs in groups)
    result = scipy.stats.bootstrap(
        data,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        paired=False,
        rng=rng,
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _medians(pool: Floats, drawn: npt.NDArray[np.int64], rng: np.random.Generator, axis: int) -> Floats:
    """Return the median over the drawn runs, each represented by one of its own resampled means."""
    runs = np.take(drawn, range(len(pool)), axis=axis).astype(np.int64)
    within = rng.integers(pool.shape[1], size=runs.shape)
    return np.asarray(np.median(pool[runs, within], axis=axis), dtype=np.float64)


def _within(sample: Sample, rng: np.random.Generator) -> Floats:
    """Return resampled values of one run: circular blocks of about n^(1/3) steps; shape (_WITHIN,)."""
    steps = np.asarray(sample.steps, dtype=np.float64)
    if len(steps) < 2 or steps.mean() <= 0:
        return np.full(_WITHIN, sample.value)
    length = math.ceil(len(steps) ** (1 / 3))
    starts = rng.integers(len(steps), size=(_WITHIN, math.ceil(len(steps) / length), 1))
    rows = ((starts + np.arange(length)) % len(steps)).reshape(_WITHIN, -1)[:, : len(steps)]
    return np.asarray(sample.value * steps[rows].mean(axis=1) / steps.mean(), dtype=np.float64)
