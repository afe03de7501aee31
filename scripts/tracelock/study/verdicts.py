"""What may be said about a difference between two sets of runs.

Four words. *faster* and *slower*: the interval of the ratio misses 1, Welch's t-test on the logarithms agrees, and the
difference matters. *no difference*: two one-sided tests (Schuirmann 1987) say that the difference is smaller than what
matters. *unclear*: neither, with how many more runs would tell.

Many variants against one baseline are many tests: their p-values are adjusted by Holm's method (Holm 1979), so that a
study of equal variants calls any of them different in 5 % of all studies at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import scipy.stats

from tracelock.study.stats import CONFIDENCE, MIN_EFFECT, Estimate, Interval, Sample, ratio_interval, two_samples

Verdict: TypeAlias = Literal["faster", "slower", "no difference", "unclear"]

POWER = 0.8  # with which the number of further runs is reckoned
MOST_RUNS = 100  # further runs that a person would make
_PERMUTATIONS = 9_999


@dataclass(frozen=True)
class Difference:
    """Variant against reference: `ratio` of their medians (below 1: less time), and what may be said about it."""

    ratio: Interval
    p_value: float | None
    verdict: Verdict | None
    why: str  # why there is no verdict, or which condition kept it from being clear; else empty
    p_adjusted: float | None = None  # Holm's, over the comparisons that stand beside this one
    p_permutation: float | None = None  # of the exact permutation test, which assumes nothing of how runs scatter
    p_smallest: float | None = None  # the least that a permutation test of so few runs can give
    at_most: float | None = None  # the largest difference that the runs leave open, as a share; None with one run
    more_runs: int | None = None  # further runs of each side that would tell; None where not unclear, or too many

    @property
    def words(self) -> str:
        """The verdict as a person reads it."""
        if self.verdict == "no difference" and self.at_most is not None:
            return f"no difference larger than {_percent(self.at_most)}"
        if self.verdict == "unclear":
            return f"unclear ({self.advice})"
        return self.verdict or "not judged"

    @property
    def advice(self) -> str:
        """How many further runs would tell, of a verdict that is unclear."""
        if self.more_runs is None:
            return f"more than {MOST_RUNS} further runs would be needed"
        return f"about {self.more_runs} more run{'s' if self.more_runs != 1 else ''} of each would tell"

    @property
    def strength(self) -> str:
        """What the p-value assumes, and what so few runs can give without that assumption."""
        if self.p_value is None or self.p_smallest is None:
            return ""
        if self.p_smallest > 1 - CONFIDENCE:
            return (
                "Welch's t-test, which takes the logarithms of the runs for normal; by their order alone so few runs "
                f"cannot give less than p = {self.p_smallest:.2f}"
            )
        shown = max(self.p_adjusted or self.p_value, self.p_permutation or 0.0, self.p_smallest)
        return f"p ≤ {_round_up(shown):.2g} (permutation test and Welch's t-test)"


def difference(
    samples: Sequence[Sample],
    reference: Sequence[Sample],
    rng: np.random.Generator,
    min_effect: float = MIN_EFFECT,
) -> Difference:
    """Compare the times of two sets of runs, as the only comparison; see `adjusted` for several.

    Parameters
    ----------
    min_effect
        Smallest part of the reference's time that counts as a difference.
    """
    ratio = ratio_interval(samples, reference, rng)
    few = min(len(samples), len(reference))
    if few < 2:
        return Difference(ratio, None, None, "a single run says nothing about how much runs differ; repeat it")
    estimate = two_samples(samples, reference)
    found = Difference(
        ratio,
        p_value=estimate.p_value,
        verdict=None,
        why="",
        p_adjusted=estimate.p_value,
        p_permutation=permutation_p(samples, reference),
        p_smallest=smallest_p(len(samples), len(reference)),
        at_most=_left_open(estimate),
    )
    return _judged(found, min_effect, further_runs(samples, reference, min_effect))


def adjusted(found: Sequence[Difference]) -> list[Difference]:
    """Return comparisons that are made beside each other, their p-values and verdicts adjusted by Holm's method."""
    known = [one.p_value for one in found if one.p_value is not None]
    limits = dict(zip(known, holm(known), strict=True))
    return [one if one.p_value is None else _with_p(one, limits[one.p_value], len(known)) for one in found]


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number, in the order given (Holm 1979)."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    result, highest = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        result[index] = highest
    return result


def smallest_p(runs: int, reference: int) -> float:
    """Return the least two-sided p-value of a permutation test: 2 over the number of ways to divide the runs."""
    return min(1.0, 2 / math.comb(runs + reference, runs))


def permutation_p(samples: Sequence[Sample], reference: Sequence[Sample]) -> float:
    """Return the two-sided p-value of the permutation test of the mean logarithm: exact up to 9,999 divisions."""
    logs = [np.log([run.value for run in runs]) for runs in (samples, reference)]
    result = scipy.stats.permutation_test(
        logs,
        lambda one, other, axis: np.mean(one, axis=axis) - np.mean(other, axis=axis),
        vectorized=True,
        n_resamples=_PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def further_runs(samples: Sequence[Sample], reference: Sequence[Sample], min_effect: float) -> int | None:
    """Return how many further runs of each side would tell a difference like this one, in four of five studies.

    A difference too small to matter is told by showing that it is; both go by the scatter seen so far.
    """
    logs = [np.log([run.value for run in runs]) for runs in (samples, reference)]
    spread = sum(float(values.var(ddof=1)) for values in logs)
    margin, seen = math.log1p(min_effect), abs(float(logs[0].mean() - logs[1].mean()))
    wanted = seen if seen >= margin else max(margin - seen, margin / 2)
    have = min(len(samples), len(reference))
    for runs in range(have + 1, have + MOST_RUNS + 1):
        freedom = 2 * runs - 2
        quantiles = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, freedom) + scipy.stats.t.ppf(POWER, freedom)
        if wanted >= quantiles * math.sqrt(spread / runs):
            return runs - have
    return None


def _judged(found: Difference, min_effect: float, more_runs: int | None) -> Difference:
    why = _unclear(found, min_effect)
    if not why:
        return replace(found, verdict="faster" if found.ratio.value < 1 else "slower")
    if found.at_most is not None and found.at_most < min_effect:
        return replace(found, verdict="no difference", why=f"the runs leave at most {_percent(found.at_most)} open")
    return replace(found, verdict="unclear", why=why, more_runs=more_runs)


def _unclear(found: Difference, min_effect: float) -> str:
    """Return which condition of a clear difference does not hold, or nothing."""
    ratio, p_value = found.ratio, found.p_value or 0.0
    if ratio.low <= 1.0 <= ratio.high:
        return "the interval of the ratio holds 1"
    if p_value > 1 - CONFIDENCE:
        return f"so few runs differ as much by chance too often (p = {p_value:.2f})"
    if abs(ratio.value - 1) < min_effect:
        return f"it is not certain whether the difference reaches {_percent(min_effect)}, the least that counts"
    return ""


def _with_p(found: Difference, p_value: float, comparisons: int) -> Difference:
    found = replace(found, p_adjusted=p_value)
    if found.verdict not in ("faster", "slower") or p_value <= 1 - CONFIDENCE:
        return found
    why = f"among {comparisons} comparisons one differs as much by chance too often (Holm's p = {p_value:.2f})"
    return replace(found, verdict="unclear", why=why, more_runs=1)


def _left_open(estimate: Estimate) -> float:
    """Return the largest difference that two one-sided tests at 5 % leave open: the far end of the 90 % interval."""
    low, high = estimate.interval(2 * CONFIDENCE - 1)
    return max(high - 1, 1 - low, 0.0)


def _percent(share: float) -> str:
    value = 100 * share
    return f"{_round_up(value):.2g} %" if value < 10 else f"{math.ceil(value):.0f} %"


def _round_up(value: float) -> float:
    """Return `value` rounded up to two significant digits: a bound must stay one."""
    if value <= 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / scale - 1e-9) * scale
