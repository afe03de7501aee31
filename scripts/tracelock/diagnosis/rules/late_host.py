"""Ranks compute equally long, and still wait for each other: a host comes late to the collectives."""

from __future__ import annotations

from tracelock.analysis.ranks import Rank, Ranks
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules.rank_imbalance import is_late
from tracelock.diagnosis.rules.straggling_rank import evidence, straggler, waited_share

NAMED = 0.1  # of the waiting: a rank that causes less of it is not named
ADVICE = (
    "the work is even: look at what holds that host up before it launches the collective (its loader, waits for the "
    "device, garbage collection, other programs on its cores)"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where ranks wait ``min_gain`` of their steps though their devices compute equally long."""
    ranks, waited = case.ranks, waited_share(case)
    if ranks is None or waited < case.limits.min_gain or straggler(case) is not None or not is_late(ranks):
        return None
    caused = sum(rank.caused_us for rank in ranks.ranks)
    late = sorted((each for each in ranks.ranks if each.caused_us >= NAMED * caused), key=lambda each: -each.caused_us)
    if not late:
        return None
    return Cause(
        title=f"Hosts come late to the collectives ({', '.join(map(_told, late[:3]))}), and the others wait up to "
        f"{percent(waited)} of their time",
        removal=None,
        share=waited,
        gain=waited,
        evidence=(_even(ranks), *evidence(ranks)),
        remedies=(Remedy({}, "all ranks come to the collectives together", f"{_why(late[0])}{ADVICE}"),),
    )


def _told(rank: Rank) -> str:
    return f"rank {rank.rank} {rank.last} times"


def _why(rank: Rank) -> str:
    where = ", ".join(rank.host_idle)
    return f"rank {rank.rank}, whose device waits for its host most in {where}: " if where else f"rank {rank.rank}: "


def _even(ranks: Ranks) -> Evidence:
    uneven = ranks.uneven_us or 0.0
    return Evidence(f"uneven computing would make the ranks wait {per_step(uneven)} on average", uneven, "µs")


RULE = Rule(
    code="late-host",
    needs="the traces of several ranks of one job, with the work of their devices",
    speaks="the ranks wait `min_gain` of their steps in collectives, no single one is to blame, and less than half of "
    "the waiting is explained by devices that compute longer than others",
    remedies="code: what holds that rank's host up",
    thresholds=("min_gain",),
    examine=examine,
    explains=("communication-exposed",),
)
