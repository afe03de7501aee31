"""One rank comes last to the collectives, and the others wait for it."""

from __future__ import annotations

from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

WHY = (
    "look at that rank's machine: clocks and throttling, other jobs on it, its data (longer samples), its "
    "place in the network"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where one rank causes ``straggler_share`` of waiting that is ``min_gain`` of the steps."""
    ranks = case.ranks
    if ranks is None or straggler(case) is None:
        return None
    waited = waited_share(case)
    if waited < case.limits.min_gain:
        return None
    return Cause(
        title=f"Rank {ranks.straggler} comes last, and the others wait up to {percent(waited)} of their time for it",
        removal=None,
        share=waited,
        gain=waited,
        estimate=expected_share(case),
        evidence=evidence(ranks),
        remedies=(Remedy({}, "collectives take as long as they need themselves", f"rank {ranks.straggler}: {WHY}"),),
    )


def straggler(case: Case) -> int | None:
    """Return the rank that causes most of the waiting and nearly always comes last; None where there is no such."""
    ranks = case.ranks
    if ranks is None or ranks.straggler is None or (ranks.straggler_share or 0.0) < case.limits.straggler_share:
        return None
    last = next((rank.last for rank in ranks.ranks if rank.rank == ranks.straggler), 0)
    return ranks.straggler if last >= case.limits.straggler_last * sum(rank.last for rank in ranks.ranks) else None


def waited_share(case: Case) -> float:
    """Return the part of its steps that the rank that waits most waits in collectives: what even ranks could save."""
    count = case.analysis.step.count
    ranks = case.ranks.ranks if case.ranks else ()
    shares = [rank.waited_us / (rank.step_us * count) for rank in ranks if rank.step_us and count]
    return min(1.0, max(shares, default=0.0))


def expected_share(case: Case) -> float:
    """Return the mean over the ranks of what each waits: even work makes the longest turn that of the mean rank."""
    count = case.analysis.step.count
    ranks = case.ranks.ranks if case.ranks else ()
    shares = [rank.waited_us / (rank.step_us * count) for rank in ranks if rank.step_us and count]
    return min(1.0, sum(shares) / len(shares)) if shares else 0.0


def evidence(ranks: Ranks) -> tuple[Evidence, ...]:
    """Return what each rank waits, and what waiting it causes."""
    return tuple(
        Evidence(
            f"rank {each.rank}: waits {per_step(each.waited_us)} in collectives, is last {each.last} times and "
            f"makes the "
            f"others wait {per_step(each.caused_us)}",
            each.caused_us,
            "µs",
        )
        for each in sorted(ranks.ranks, key=lambda each: -each.caused_us)[:4]
    )


RULE = Rule(
    code="straggling-rank",
    needs="the traces of several ranks of one job",
    speaks="one rank causes `straggler_share` of all waiting in collectives, is the last to come to "
    "`straggler_last` of them, and the ranks wait `min_gain` of their steps",
    remedies="code: look at the rank's machine and data",
    thresholds=("straggler_share", "straggler_last", "min_gain"),
    examine=examine,
    explains=("communication-exposed",),
)
