"""The collectives of several ranks brought together: which calls are one, and how far the clocks are apart.

The k-th call of a collective by a process group is the same call in every rank. A rank arrives when its kernel (on the
host: its call) begins; the data begin to move when the last rank has arrived, and all ranks leave together: that is
what tells how far their clocks are apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tracelock.analysis.collective_calls import HOST, Call, Description
from tracelock.analysis.intervals import lengths_within
from tracelock.analysis.model import Analysis, Gpu
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.same_work import Work, kernels_by_grid

TOGETHER = frozenset(("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"))  # no rank leaves early
ENOUGH = 3  # collectives that tell how far two clocks are apart
_RANK_IN_NAME = re.compile(r"(?:rank|worker)[-_ ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class RankTrace:
    """What is kept of one rank's trace; ns on its own clock."""

    file: str
    rank: int
    world_size: int | None
    clock: int | None  # baseTimeNanoseconds: what makes a time one of the epoch
    window: tuple[int, int]  # of all steps
    calls: tuple[Call, ...]  # in order of start
    step_us: float | None
    gpu: Gpu | None
    computed_us: tuple[float, ...] = ()  # on the device in each step; empty without a device
    kernels: Work = field(default_factory=dict)  # of its device; empty but for one


@dataclass(frozen=True)
class Ahead:
    """How far one clock is ahead of another, by the median of collectives; ns."""

    by: float
    spread: float  # median deviation of single collectives from that


@dataclass(frozen=True)
class Meeting:
    """One collective over its ranks; ns, `shift` is what to take from a rank's times."""

    calls: Mapping[int, Call]
    shift: Mapping[int, int]

    @property
    def what(self) -> Description:
        """Return what they did together, as the first of them tells it."""
        return next(iter(self.calls.values())).what

    def arrival(self, rank: int) -> int:
        """Return when `rank` arrived, ns."""
        return self.calls[rank].start - self.shift[rank]

    def departure(self, rank: int) -> int:
        """Return when `rank` left, ns."""
        return self.calls[rank].end - self.shift[rank]

    @property
    def last(self) -> int:
        """Return the rank that arrived last."""
        return max(self.calls, key=lambda rank: (self.arrival(rank), rank))

    def waited(self, rank: int) -> int:
        """Return how long `rank` waited for the last one; never longer than its own call."""
        call = self.calls[rank]
        return max(0, min(self.arrival(self.last) - self.arrival(rank), call.end - call.start))

    @property
    def skew(self) -> int:
        """Return how long after the first the last one arrived, ns."""
        arrivals = [self.arrival(rank) for rank in self.calls]
        return max(arrivals) - min(arrivals)

    @property
    def latency(self) -> int:
        """Return the shortest time that a rank spent in it, ns: what it takes without waiting."""
        return min(call.end - call.start for call in self.calls.values())

    @property
    def together(self) -> bool:
        """Return whether all ranks leave it together, so that it tells of waiting and of clocks."""
        return self.what.name in TOGETHER and len(self.calls) > 1


def observe(known: Prepared, calls: Sequence[Call], analysis: Analysis, place: int) -> RankTrace:
    """Return what the comparison of ranks needs of one trace.

    Parameters
    ----------
    calls
        The collectives of the trace; those of the device count, and the host's where it has none.
    place
        Place of the file in the list: its rank where neither the file nor its name tells.

    """
    facts = known.trace.facts
    rank = facts.rank
    if rank is None and (found := _RANK_IN_NAME.search(Path(facts.file).name)):
        rank = int(found[1])
    return RankTrace(
        file=facts.file,
        rank=place if rank is None else rank,
        world_size=facts.world_size,
        clock=facts.base_time_ns,
        window=known.windows.extent() or (0, 0),
        calls=tuple([call for call in calls if call.device != HOST] or calls),
        step_us=analysis.step.mean_us,
        gpu=analysis.gpus[0] if len(analysis.gpus) == 1 else None,
        computed_us=_computed(known),
        kernels=kernels_by_grid(known) if len(known.times) == 1 else {},
    )


def _computed(known: Prepared) -> tuple[float, ...]:
    """Return how long the device computed in each step, collectives left out, µs; empty but for one device."""
    if len(known.times) != 1:
        return ()
    found = lengths_within(known.times[0].compute, known.windows.start, known.windows.end) / 1000
    return tuple(found.tolist())


def align(traces: Sequence[RankTrace]) -> tuple[list[Meeting], int, str, dict[int, Ahead | None]]:
    """Return what the ranks did together, on one clock.

    Returns
    -------
    meetings
        In order, those that begin inside the steps of each of their ranks.
    unmatched
        Calls without partner: another rank of the group has another number of them, or none.
    clocks
        What brought the clocks together: "collectives", "baseTimeNanoseconds", or nothing: "as written".
    ahead
        How far the clock of each rank is ahead of the first one's, as far as collectives tell.
    """
    met, unmatched = _match(traces)
    clocks, shift = _shifts_by_clock(traces)
    ahead = _ahead([Meeting(calls, shift) for calls in met], [trace.rank for trace in traces])
    if met and None not in ahead.values():
        clocks = "collectives"
        shift = {rank: shift[rank] + round(found.by) for rank, found in ahead.items() if found}
    windows = {trace.rank: trace.window for trace in traces}
    return [Meeting(calls, shift) for calls in met if _inside(calls, windows)], unmatched, clocks, ahead


def _match(traces: Sequence[RankTrace]) -> tuple[list[dict[int, Call]], int]:
    """Return the calls that belong together, by rank, in order; and how many calls are left over."""
    by_key: dict[tuple[str | None, str], dict[int, list[Call]]] = defaultdict(dict)
    for trace in traces:
        for call in trace.calls:
            by_key[call.what.group, call.what.name].setdefault(trace.rank, []).append(call)
    met: list[dict[int, Call]] = []
    left = 0
    for lists in by_key.values():
        if len(lists) > 1 and len({len(calls) for calls in lists.values()}) == 1:
            met += [dict(zip(lists, calls, strict=True)) for calls in zip(*lists.values(), strict=True)]
        else:
            left += sum(map(len, lists.values()))
    return sorted(met, key=lambda calls: next(iter(calls.values())).start), left


def _inside(calls: Mapping[int, Call], windows: Mapping[int, tuple[int, int]]) -> bool:
    return all(windows[rank][0] <= call.start < windows[rank][1] for rank, call in calls.items())


def _shifts_by_clock(traces: Sequence[RankTrace]) -> tuple[str, dict[int, int]]:
    """Return what to take from each rank's times to bring them to one clock, ns, as far as the files tell."""
    clocks = {trace.rank: trace.clock for trace in traces if trace.clock is not None}
    if len(clocks) < len(traces):
        return "as written", {trace.rank: 0 for trace in traces}
    first = clocks[traces[0].rank]
    return "baseTimeNanoseconds", {rank: first - clock for rank, clock in clocks.items()}


def _ahead(meetings: Sequence[Meeting], ranks: Sequence[int]) -> dict[int, Ahead | None]:
    """Return how far each rank's clock is ahead of the first one's.

    None where fewer than ENOUGH collectives that all leave together tell. The median holds against single calls in
    which a rank left early or late.
    """
    return {rank: _ahead_of(meetings, ranks[0], rank) for rank in ranks}


def _ahead_of(meetings: Sequence[Meeting], first: int, rank: int) -> Ahead | None:
    if rank == first:
        return Ahead(0.0, 0.0)
    both = [each for each in meetings if each.together and first in each.calls and rank in each.calls]
    if len(both) < ENOUGH:
        return None
    apart = [each.departure(rank) - each.departure(first) for each in both]
    middle = median(apart)
    return Ahead(middle, median(abs(each - middle) for each in apart))
