"""Now this rank and now that one comes last: the work of a step is uneven."""

from __future__ import annotations

from statistics import median

from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules.straggling_rank import evidence, expected_share, straggler, waited_share

EXPLAINED = 0.5  # of the waiting
APART = 3.0  # median deviations: two standard deviations
FEWEST = 3  # steps that tell how much they differ


def examine(case: Case) -> Cause | None:
    """Return the cause where ranks wait ``min_gain`` of their steps, and no single one is to blame."""
    ranks = case.ranks
    waited = waited_share(case)
    if ranks is None or waited < case.limits.min_gain:
        return None
    if straggler(case) is not None or is_late(ranks) or waited < case.limits.min_gain + noise(case):
        return None
    advice = "give the ranks equal work: bucket samples by length, pad to the same size, split by cost and not by count"
    return Cause(
        title=f"Ranks have uneven work: they wait up to {percent(waited)} of their time for whichever comes last",
        removal=None,
        share=waited,
        gain=waited,
        estimate=expected_share(case),
        evidence=evidence(ranks),
        remedies=(Remedy({}, "all ranks come to the collectives together", advice),),
    )


def is_late(ranks: Ranks) -> bool:
    """Return whether uneven computing explains less than `EXPLAINED` of the waiting: hosts come late, then."""
    waited = sum(rank.waited_us for rank in ranks.ranks) / max(1, len(ranks.ranks))
    return ranks.uneven_us is not None and ranks.uneven_us < EXPLAINED * waited


def noise(case: Case) -> float:
    """Return what ranks of equal work wait for each other by chance, as a part of the step.

    Where computing is not known (collectives of the host alone), by how much the steps of this rank differ: two of them
    that are drawn by chance are that far apart.
    """
    lengths = [step.duration_us for step in case.analysis.steps if step.complete]
    if case.ranks is None or case.ranks.uneven_us is not None or len(lengths) < FEWEST:
        return 0.0
    middle = median(lengths)
    return APART * median(abs(each - middle) for each in lengths) / middle if middle else 0.0


RULE = Rule(
    code="rank-imbalance",
    needs="the traces of several ranks of one job",
    speaks="the ranks wait `min_gain` of their steps in collectives, and no rank causes "
    "`straggler_share` of that while it is last in `straggler_last` of them; where their devices compute equally long "
    "hosts are late (`late-host`), and without devices what steps differ by of themselves is left out",
    remedies="code: equal work for all ranks",
    thresholds=("straggler_share", "straggler_last", "min_gain"),
    examine=examine,
    explains=("communication-exposed",),
)
