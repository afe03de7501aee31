"""The tables of several ranks of one job."""

from __future__ import annotations

from collections.abc import Iterator

from tracelock.analysis.ranks import Rank, Ranks
from tracelock.cli import _format as fmt
from tracelock.cli._grid import Section, grid

CLOCKS = {
    "collectives": "clocks brought together by the collectives",
    "baseTimeNanoseconds": "clocks as baseTimeNanoseconds has them: too few collectives to check them by",
    "as written": "clocks as written: too few collectives to bring them together",
}


def rank_verdict(ranks: Ranks) -> str:
    """Return who holds the others up, in a sentence or two."""
    waited = f"In the mean a rank waits {fmt.share(ranks.waited_share)} of its steps for others to arrive"
    absent = (ranks.world_size or 0) - len(ranks.ranks)
    here = f" {fmt.plural(absent, 'rank')} of the job are not here: it may be more." if absent > 0 else ""
    if ranks.straggler is None:
        return f"{waited}; no single rank causes more than half of it.{here}"
    last = next(each.last for each in ranks.ranks if each.rank == ranks.straggler)
    part = fmt.share(ranks.straggler_share)
    told = f"rank {ranks.straggler} causes {part} of that (last in {last} of {ranks.matched} collectives)"
    return f"{waited}; {told}.{here}"


def rank_sections(ranks: Ranks, top: int) -> Iterator[Section]:
    """Yield the tables of `ranks`; collectives with `top` rows at most."""
    size = f" of {ranks.world_size}" if ranks.world_size else ""
    columns = ("rank", "step", "GPU", "compute", "exposed", "waits", "causes", "last", "clock")
    legend = "exposed: communication alone; waits: for the last to arrive; causes: waiting of others"
    yield f"{len(ranks.ranks)}{size} ranks ({legend}), {CLOCKS[ranks.clocks]}", grid(columns, map(_rank, ranks.ranks))
    rows = [
        (
            f"{each.name} {each.dtype or ''}".strip(),
            fmt.count(each.calls),
            fmt.size(each.bytes),
            fmt.time(each.latency_us / each.calls),
            fmt.time(each.skew_us),
            fmt.time(each.longest_skew_us),
            fmt.rate(each.bus_bandwidth),
        )
        for each in sorted(ranks.collectives, key=lambda each: -each.skew_us * each.calls)[:top]
    ]
    headings = ("collective", "calls", "bytes", "takes", "mean skew", "longest skew", "bus")
    left = f"; {fmt.plural(ranks.unmatched, 'call')} without partner" if ranks.unmatched else ""
    yield f"{fmt.plural(ranks.matched, 'collective')} in common{left}", grid(headings, rows)


def _rank(each: Rank) -> tuple[str, ...]:
    return (
        str(each.rank),
        fmt.time(each.step_us),
        fmt.share(each.utilization),
        fmt.time(each.compute_us),
        fmt.time(each.exposed_communication_us),
        fmt.time(each.waited_us),
        fmt.time(each.caused_us),
        fmt.count(each.last),
        fmt.time(each.clock_us),
    )
