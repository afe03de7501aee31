"""Several ranks of one job: who arrives last at the collectives, and how long the others wait.

The shortest call of the ranks is what a collective itself takes; what the others take longer is waiting for the last
one to arrive. See `meetings` for which calls belong together, and for the clocks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from tracelock.analysis.collectives import bus_factor
from tracelock.analysis.meetings import Ahead, Meeting, RankTrace, align
from tracelock.analysis.same_work import Computed, slower
from tracelock.errors import Problem, TracelockError


@dataclass(frozen=True)
class Rank:
    """One rank beside the others. Times in microseconds, over the window of all steps."""

    rank: int
    file: str
    step_us: float | None
    utilization: float | None
    compute_us: float | None
    communication_us: float | None
    exposed_communication_us: float | None
    waited_us: float  # in collectives, for the rank that came last
    caused_us: float  # waiting of the other ranks while this one was the last
    last: int  # collectives that it was the last to arrive at
    clock_us: float | None  # how far its clock is ahead of the first rank's, by the collectives
    clock_spread_us: float | None  # median deviation of single collectives from that
    host_idle: tuple[str, ...] = ()  # what its host did while its device had nothing to do: the most first
    slower: float | None = None  # how many times as long its device takes for the same kernels as the others'


@dataclass(frozen=True)
class RankCollective:
    """The calls of one collective over all ranks of its group. Microseconds; bytes per second."""

    name: str
    dtype: str | None
    group: str | None
    ranks: int  # of the group that are here
    group_size: int | None
    calls: int
    bytes: int | None
    latency_us: float  # sum over the calls of the shortest time of any rank
    skew_us: float  # mean over the calls of last arrival less first arrival
    longest_skew_us: float
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None


@dataclass(frozen=True)
class RankWait:
    """How long one rank waited in collectives that another was the last to arrive at."""

    rank: int
    waits_for: int
    collectives: int
    time_us: float


@dataclass(frozen=True)
class Ranks:
    """The document ``tracelock/ranks/1``."""

    ranks: tuple[Rank, ...]
    world_size: int | None
    collectives: tuple[RankCollective, ...]
    matched: int  # collectives found in all ranks that are here
    unmatched: int  # calls whose partner is missing: another number of them in another rank
    clocks: str  # "collectives", "baseTimeNanoseconds", "as written"
    straggler: int | None  # the rank that causes more waiting than all others together
    straggler_share: float | None  # its part of all waiting
    waited_share: float | None  # mean waiting over the mean window of the steps
    waits: tuple[RankWait, ...] = ()  # who waits for whom, longest first
    # What ranks would wait if only their computing were uneven, mean over them; None where it is not known of all.
    uneven_us: float | None = None


def compare_ranks(traces: Sequence[RankTrace]) -> Ranks | None:
    """Return `traces` as the ranks of one job, None where they have no collective in common.

    Raises
    ------
    TracelockError
        If two files are of the same rank.
    """
    _refuse_twins(traces)
    ordered = sorted(traces, key=lambda trace: trace.rank)
    meetings, unmatched, clocks, ahead = align(ordered)
    if not meetings:
        return None
    slow = slower([Computed(trace.computed_us, trace.kernels) for trace in ordered])
    ranks = tuple(_rank(trace, meetings, ahead[trace.rank], ratio) for trace, ratio in zip(ordered, slow, strict=True))
    return _summary(ordered, ranks, meetings, unmatched, clocks)


def _refuse_twins(traces: Sequence[RankTrace]) -> None:
    files: dict[int, list[str]] = defaultdict(list)
    for trace in traces:
        files[trace.rank].append(trace.file)
    problems = [
        Problem(" and ".join(names), f"are all of rank {rank}", "give one file a rank to compare ranks")
        for rank, names in files.items()
        if len(names) > 1
    ]
    if problems:
        raise TracelockError(problems)


def _rank(trace: RankTrace, meetings: Sequence[Meeting], ahead: Ahead | None, ratio: float | None) -> Rank:
    mine = [each for each in meetings if each.together and trace.rank in each.calls]
    last = [each for each in mine if each.last == trace.rank]
    gpu = trace.gpu
    return Rank(
        rank=trace.rank,
        file=trace.file,
        step_us=trace.step_us,
        utilization=None if gpu is None else gpu.utilization,
        compute_us=None if gpu is None else gpu.compute_us,
        communication_us=None if gpu is None else gpu.communication_us,
        exposed_communication_us=None if gpu is None else gpu.exposed_communication_us,
        waited_us=sum(each.waited(trace.rank) for each in mine) / 1000,
        caused_us=sum(each.waited(rank) for each in last for rank in each.calls) / 1000,
        last=len(last),
        clock_us=None if ahead is None else ahead.by / 1000,
        clock_spread_us=None if ahead is None else ahead.spread / 1000,
        host_idle=() if gpu is None else tuple(each.name for each in gpu.host_idle[:2]),
        slower=ratio,
    )


def _summary(
    traces: Sequence[RankTrace], ranks: tuple[Rank, ...], meetings: Sequence[Meeting], unmatched: int, clocks: str
) -> Ranks:
    caused = sum(rank.caused_us for rank in ranks)
    worst = max(ranks, key=lambda rank: rank.caused_us)
    straggles = worst.caused_us > caused / 2
    window = sum(high - low for low, high in (trace.window for trace in traces)) / 1000
    return Ranks(
        ranks=ranks,
        world_size=next((trace.world_size for trace in traces if trace.world_size is not None), None),
        collectives=tuple(_collectives(meetings)),
        matched=len(meetings),
        unmatched=unmatched,
        clocks=clocks,
        straggler=worst.rank if straggles else None,
        straggler_share=worst.caused_us / caused if straggles else None,
        waited_share=sum(rank.waited_us for rank in ranks) / window if window else None,
        waits=_waits(meetings),
        uneven_us=_uneven_us(traces),
    )


def _waits(meetings: Sequence[Meeting]) -> tuple[RankWait, ...]:
    """Return the waiting by pair; pairs that never waited are left out."""
    sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for each in meetings:
        for rank in each.calls if each.together else ():
            if waited := each.waited(rank):
                sums[rank, each.last][0] += 1
                sums[rank, each.last][1] += waited
    found = [RankWait(rank, last, count, time / 1000) for (rank, last), (count, time) in sums.items()]
    return tuple(sorted(found, key=lambda each: (-each.time_us, each.rank, each.waits_for)))


def _uneven_us(traces: Sequence[RankTrace]) -> float | None:
    """Return how long ranks compute less than the one that computes most, summed over the steps; mean over ranks."""
    steps = {len(trace.computed_us) for trace in traces}
    if len(steps) != 1 or not steps.pop():
        return None
    per_step = zip(*(trace.computed_us for trace in traces), strict=True)
    return float(sum(max(each) - fmean(each) for each in per_step))


def _collectives(meetings: Sequence[Meeting]) -> Iterator[RankCollective]:
    groups: dict[tuple[str, str | None, str | None, int | None], list[Meeting]] = defaultdict(list)
    for each in meetings:
        groups[each.what.name, each.what.dtype, each.what.group, each.what.group_size].append(each)
    for (name, dtype, group, group_size), members in groups.items():
        sizes = [each.what.bytes for each in members]
        size = None if None in sizes else sum(each for each in sizes if each is not None)
        latency = sum(each.latency for each in members)
        algorithm = size / (latency / 1e9) if size and latency else None
        factor = bus_factor(name, group_size)
        yield RankCollective(
            name=name,
            dtype=dtype,
            group=group,
            ranks=max(len(each.calls) for each in members),
            group_size=group_size,
            calls=len(members),
            bytes=size,
            latency_us=latency / 1000,
            skew_us=sum(each.skew for each in members) / len(members) / 1000,
            longest_skew_us=max(each.skew for each in members) / 1000,
            algorithm_bandwidth=algorithm,
            bus_bandwidth=None if algorithm is None or factor is None else algorithm * factor,
        )
