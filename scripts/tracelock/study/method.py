"""How the figures of a comparison were made, in words, and what the smallest number of runs allows to say."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.study import stats
from tracelock.study.comparison import Case, Method
from tracelock.study.gather import Gathered


def method(results: Gathered, cases: Sequence[Case], min_effect: float) -> Method:
    """Return the method of a comparison that calls differences below `min_effect` (a share) none."""
    fewest = min((case.runs for case in cases if case.runs), default=0)
    effect = f"{100 * min_effect:.3g} %"
    return Method(
        interval=(
            "Median over runs of the timed part (without the profiler) divided by its steps. Intervals: "
            f"{100 * stats.CONFIDENCE:.0f} % percentile bootstrap (scipy.stats.bootstrap, {stats.RESAMPLES:,} "
            "resamples); runs are drawn with replacement, and inside each drawn run blocks of consecutive steps. Below "
            f"{stats.ENOUGH_RUNS} runs they are widened until they hold Student's interval of the runs' logarithms."
        ),
        few_runs=_few_runs(fewest),
        verdict=(
            "Faster or slower: the interval of the ratio misses 1, Welch's t-test on the logarithms of the runs gives "
            f"p ≤ {1 - stats.CONFIDENCE:.2f} after Holm's adjustment for the number of variants, and the difference is "
            f"at least {effect}. No difference: two one-sided tests at 5 % show that it is smaller than {effect}. "
            "Unclear: neither; more runs would tell."
        ),
        confidence=stats.CONFIDENCE,
        resamples=stats.RESAMPLES,
        seed=results.plan.seed,
        min_effect=min_effect,
    )


def _few_runs(fewest: int) -> str:
    """Return what a person should know about a small number of runs, with what to do; empty where there are enough."""
    if fewest >= stats.ENOUGH_RUNS:
        return ""
    if fewest < 2:
        return (
            "A single run of each variant says nothing about how much runs differ, so differences are not judged; "
            f"6 would do (repeats: {stats.ENOUGH_RUNS})."
        )
    return f"{fewest} runs of each variant are few; {stats.ENOUGH_RUNS} would do (repeats: {stats.ENOUGH_RUNS})."
