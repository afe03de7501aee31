"""One rank's device is slower than the others': the same kernels take it longer, and the others wait."""

from __future__ import annotations

from tracelock.analysis.ranks import Rank
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.measures import percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules.straggling_rank import evidence, expected_share, waited_share

SLOWER = 1.05  # times: devices of one kind differ by two or three per cent
ADVICE = (
    "compare its clocks with the others' while they train (`nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE`): heat, "
    "a power limit, a locked clock, another process or partition on it, another model of device; take it out of the "
    "job if it stays slow"
)


def examine(case: Case) -> Cause | None:
    """Return the cause where ranks wait ``min_gain`` of their steps for a few whose devices are slower."""
    ranks, waited = case.ranks, waited_share(case)
    if ranks is None or waited < case.limits.min_gain:
        return None
    slow = sorted(
        (each for each in ranks.ranks if (each.slower or 1.0) >= SLOWER), key=lambda each: -(each.slower or 1)
    )
    caused = sum(each.caused_us for each in ranks.ranks)
    mine = sum(each.caused_us for each in slow)
    if not slow or 2 * len(slow) >= len(ranks.ranks) + 1 or mine < case.limits.straggler_share * caused:
        return None
    return Cause(
        title=f"{_named(slow)}: the same kernels take up to {slow[0].slower:.2f} times as long as on the other ranks, "
        f"which wait up to {percent(waited)} of their time",
        removal=None,
        share=waited,
        gain=waited,
        estimate=expected_share(case),
        evidence=(*(_told(each) for each in slow[:3]), *evidence(ranks)),
        remedies=(Remedy({}, "all ranks compute as fast as the others", f"rank {slow[0].rank}: {ADVICE}"),),
        explains=("straggling-rank", "rank-imbalance", "late-host", "communication-exposed"),
    )


def _named(slow: list[Rank]) -> str:
    if len(slow) == 1:
        return f"The device of rank {slow[0].rank} is slow"
    return f"The devices of ranks {', '.join(str(each.rank) for each in slow[:4])} are slow"


def _told(rank: Rank) -> Evidence:
    text = f"rank {rank.rank}: kernels of the same name, grid and number take {rank.slower:.2f} times as long"
    return Evidence(text, rank.slower, "times", SLOWER)


RULE = Rule(
    code="slow-device",
    needs="the traces of several ranks of one job, with the work of their devices",
    speaks="the ranks wait `min_gain` of their steps in collectives, and ranks (fewer than half) cause "
    "`straggler_share` of that whose devices take 1.05 times as long or more, in three of four steps and by about as "
    "much in each, for kernels of the same name, grid and number; nearly all kernels have to be slower: a "
    "longer sample makes only some of them so",
    remedies="code: look at that device's clocks, heat and neighbours",
    thresholds=("straggler_share", "min_gain"),
    examine=examine,
)
