"""Several ranks: clocks, who arrives last, who waits how long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import kernel, make_trace, op, step
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.meetings import RankTrace, observe
from tracelock.analysis.prepared import prepare
from tracelock.analysis.ranks import RankCollective, Ranks, RankWait, compare_ranks
from tracelock.errors import TracelockError
from tracelock.trace import Trace, read_trace

END = 100_000_000


def seen(trace: Trace, place: int = 0) -> RankTrace:
    known = prepare(trace)
    return observe(known, collective_calls(trace, known.tree, known.links), analyze_prepared(known), place)


def rank(number: int, arrivals: list[tuple[int, int]], *, shift: int = 0, base: int | None = None) -> RankTrace:
    """Return a rank that is in an all-reduce of 4000 bytes from each (arrival, end), ns on a clock that is ahead."""
    what = {
        "Collective name": "allreduce",
        "In msg nelems": 1000,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
    }
    device = [
        kernel("ncclDevKernel_AllReduce", start + shift, end - start, collective=what, device=number)
        for start, end in arrivals
    ]
    host = [step(0, shift, END), op("aten::mm", shift, 10)]
    return seen(make_trace(host=host, device=device, rank=number, world_size=2, base_time_ns=base))


FIRST = [(1000, 5000), (11000, 15000), (21000, 25000)]
SECOND = [(4000, 5000), (14000, 15000), (20000, 25000)]


def compared(*traces: RankTrace) -> Ranks:
    found = compare_ranks(traces)
    assert found is not None
    return found


def test_figures_by_hand() -> None:
    found = compared(rank(1, SECOND), rank(0, FIRST))
    assert [each.rank for each in found.ranks] == [0, 1]
    first, second = found.ranks
    assert (first.waited_us, first.caused_us, first.last) == (6.0, 1.0, 1)
    assert (second.waited_us, second.caused_us, second.last) == (1.0, 6.0, 2)
    assert (found.straggler, found.straggler_share) == (1, pytest.approx(6 / 7))
    assert found.waits == (RankWait(0, 1, 2, 6.0), RankWait(1, 0, 1, 1.0))
    assert found.waited_share == pytest.approx(7 / (2 * END / 1000))
    assert (found.matched, found.unmatched, found.clocks, found.world_size) == (3, 0, "collectives", 2)
    assert found.collectives == (
        RankCollective(
            name="all_reduce",
            dtype="float32",
            group="0",
            ranks=2,
            group_size=2,
            calls=3,
            bytes=12_000,
            latency_us=1.0 + 1.0 + 4.0,
            skew_us=pytest.approx(7 / 3),
            longest_skew_us=3.0,
            algorithm_bandwidth=pytest.approx(12_000 / 6e-6),
            bus_bandwidth=pytest.approx(12_000 / 6e-6),
        ),
    )


@given(st.integers(-(10**9), 10**9))
def test_collectives_bring_clocks_together(shift: int) -> None:
    """However far one clock is ahead, the waiting is the same, and the distance is found."""
    shift += 10**9  # times of a trace are not negative
    plain, moved = compared(rank(0, FIRST), rank(1, SECOND)), compared(rank(0, FIRST), rank(1, SECOND, shift=shift))
    assert [replace(each, clock_us=None) for each in moved.ranks] == [
        replace(each, clock_us=None) for each in plain.ranks
    ]
    assert moved.ranks[1].clock_us == pytest.approx(shift / 1000)
    assert moved.ranks[1].clock_spread_us == 0


def test_base_times_serve_where_collectives_are_too_few() -> None:
    """Written 1 ms apart, on clocks that began 1 ms apart: the same moment."""
    found = compared(rank(0, FIRST[:2], base=1_000_000), rank(1, SECOND[:2], shift=1_000_000, base=0))
    assert found.clocks == "baseTimeNanoseconds"
    assert [each.waited_us for each in found.ranks] == [6.0, 0.0]
    assert found.ranks[1].clock_us is None


def test_without_either_times_are_taken_as_written() -> None:
    assert compared(rank(0, FIRST[:2]), rank(1, SECOND[:2])).clocks == "as written"


def test_one_call_in_which_a_rank_leaves_late_does_not_move_the_clock() -> None:
    late = [*SECOND[:2], (20000, 99000)]
    assert compared(rank(0, FIRST), rank(1, late)).ranks[1].clock_us == 0


def test_calls_without_partner_are_counted_and_not_guessed() -> None:
    assert compare_ranks([rank(0, FIRST), rank(1, SECOND[:2])]) is None


def test_calls_outside_the_steps_do_not_count() -> None:
    early = [(start - 900, end) for start, end in FIRST]
    found = compared(replace(rank(0, early), window=(5000, END)), rank(1, SECOND))
    assert found.matched == 2


def test_no_one_straggles_where_all_cause_alike() -> None:
    first, second = [(0, 9), (5, 19), (20, 29)], [(4, 9), (10, 19), (29, 29)]
    third = [(0, 9), (10, 19), (20, 29)]
    found = compared(rank(0, first), rank(1, third), replace(rank(1, second), rank=2))
    assert found.straggler == 2
    even = compared(rank(0, [(0, 9), (14, 19), (20, 29)]), rank(1, [(4, 9), (10, 19), (20, 29)]))
    assert even.straggler is None
    assert even.straggler_share is None


def test_two_files_of_one_rank_are_refused_by_name() -> None:
    with pytest.raises(TracelockError, match=r"made\.json and made\.json: are all of rank 0"):
        compare_ranks([rank(0, FIRST), rank(0, SECOND)])


def test_traces_without_common_collectives_are_no_ranks_of_one_job() -> None:
    assert compare_ranks([seen(make_trace(host=[op("aten::mm", 0, 5)]), place) for place in range(2)]) is None


@pytest.mark.parametrize(
    ("file", "expected"),
    [("trace_rank3.json", 3), ("rank-12.Jul_15.pt.trace.json.gz", 12), ("worker2.16.json", 2), ("trace.json", 7)],
)
def test_the_name_tells_the_rank_where_the_file_does_not(file: str, expected: int) -> None:
    assert seen(make_trace(host=[op("aten::mm", 0, 5)], file=file), place=7).rank == expected


arrivals = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), min_size=3, max_size=8)


@given(arrivals)
def test_waiting_is_that_of_a_slow_twin(rows: list[tuple[int, int, int]]) -> None:
    """All ranks leave 10 ns after the last arrival; who waits is counted nanosecond by nanosecond."""
    lists: list[list[tuple[int, int]]] = [[], [], []]
    waited, caused = [0, 0, 0], [0, 0, 0]
    for number, row in enumerate(rows):
        begun = 1000 * number
        for place, arrival in enumerate(row):
            lists[place].append((begun + arrival, begun + max(row) + 10))
        last = max(place for place, arrival in enumerate(row) if arrival == max(row))
        for tick in range(max(row)):
            for place, arrival in enumerate(row):
                if arrival <= tick:
                    waited[place] += 1
                    caused[last] += 1
    found = compared(*(replace(rank(place % 2, each), rank=place) for place, each in enumerate(lists)))
    assert [each.waited_us for each in found.ranks] == pytest.approx([each / 1000 for each in waited])
    assert [each.caused_us for each in found.ranks] == pytest.approx([each / 1000 for each in caused])


def test_the_eight_ranks_of_dlrm(shared: Path) -> None:
    paths = [shared / "traces" / f"dlrm-rank{number}.json.gz" for number in range(8)]
    found = compared(*(seen(read_trace(path)) for path in paths))
    assert (found.matched, found.unmatched, found.world_size, found.clocks) == (8, 0, 8, "collectives")
    assert (found.straggler, found.straggler_share) == (7, pytest.approx(0.759, abs=1e-3))
    assert sum(each.waited_us for each in found.ranks) == pytest.approx(sum(each.caused_us for each in found.ranks))
    assert sum(each.last for each in found.ranks) == found.matched
    for each in found.ranks:
        assert abs(each.clock_us or 0) <= 2  # one machine, one clock
        assert each.waited_us <= (each.communication_us or 0)
