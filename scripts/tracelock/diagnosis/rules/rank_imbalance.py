"""Now this rank and now that one comes last: the work of a step is uneven."""

from __future__ import annotations

from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import percent
from tracelock.diagnosis.model import Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules.straggling_rank import evidence, expected_share, straggler, waited_share


def examine(case: Case) -> Cause | None:
    """Return the cause where ranks wait ``min_gain`` of their steps, and no single one is to blame."""
    ranks = case.ranks
    waited = waited_share(case)
    if ranks is None or waited < case.limits.min_gain:
        return None
    if straggler(case) is not None:
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


RULE = Rule(
    code="rank-imbalance",
    needs="the traces of several ranks of one job",
    speaks="the ranks wait `min_gain` of their steps in collectives, and no rank causes "
    "`straggler_share` of that while it is last in `straggler_last` of them",
    remedies="code: equal work for all ranks",
    thresholds=("straggler_share", "straggler_last", "min_gain"),
    examine=examine,
    explains=("communication-exposed",),
)
