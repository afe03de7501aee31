"""A slow device among ranks is told from uneven work, from a late host, and from ranks that are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from builders import kernel, make_trace, op, step

from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.meetings import RankTrace, observe
from tracelock.analysis.prepared import prepare
from tracelock.analysis.ranks import compare_ranks
from tracelock.analysis.same_work import Computed, slower
from tracelock.diagnosis import Diagnosed, diagnose

US = 1000
RANKS = ("slow-device", "straggling-rank", "rank-imbalance", "late-host")
STEPS, LENGTH = 8, 2000  # µs
KERNELS = ("gemm_128x64", "elementwise", "softmax", "layer_norm")
Time = Callable[[int, int], float]  # of a step and the place of a kernel: times as long as usual


def rank(number: int, times: Time, late_us: int = 0, calls: int = 1, grid: float = 4.0) -> tuple[RankTrace, object]:
    """Return a rank whose four kernels take 100 µs each times `times`, and an all-reduce that all leave together."""
    host, device = [], []
    what = {
        "Collective name": "allreduce",
        "In msg nelems": 9,
        "Group size": 4,
        "dtype": "Float",
        "Process Group Name": "0",
    }
    for each in range(STEPS):
        at = each * LENGTH * US
        host += [step(each, at, LENGTH * US - 1), op("aten::mm", at, 50 * US)]
        now = at + (10 + late_us) * US
        for place, name in enumerate(KERNELS):
            for _ in range(calls):
                length = round(100 * US * times(each, place) / calls)
                device.append(kernel(name, now, length, device=number, blocks_per_sm=grid))
                now += length
        device.append(kernel("ncclDevKernel_AllReduce", now, at + 1990 * US - now, device=number, collective=what))
    trace = make_trace(host=host, device=device, rank=number, world_size=4)
    known = prepare(trace)
    analysis = analyze_prepared(known)
    return observe(known, collective_calls(trace, known.tree, known.links), analysis, number), analysis


def said(ranks: Sequence[tuple[RankTrace, object]]) -> Diagnosed:
    found = compare_ranks([each for each, _ in ranks])
    return diagnose(ranks[0][1], ranks=found)  # type: ignore[arg-type]


def equal(number: int) -> tuple[RankTrace, object]:
    return rank(number, lambda _, __: 1.0)


def codes(found: Diagnosed) -> list[str]:
    """Return the findings that need several ranks."""
    return [each.code for each in found.findings if each.code in RANKS]


@pytest.mark.parametrize("ratio", [1.3, 1.6, 2.0])
def test_a_device_that_takes_longer_for_the_same_kernels_is_slow(ratio: float) -> None:
    found = said([*map(equal, range(3)), rank(3, lambda _, __: ratio)])
    main = next(each for each in found.findings if each.code in RANKS)
    assert codes(found) == ["slow-device"]
    assert "rank 3" in main.title
    assert f"{ratio:.2f} times" in main.title
    assert main.gain_at_most == pytest.approx(4 * 100 * (ratio - 1) / LENGTH, abs=0.01)


OTHERS: dict[str, tuple[RankTrace, object]] = {
    "more calls": rank(3, lambda _, __: 1.6, calls=2),
    "larger grids": rank(3, lambda _, __: 1.6, grid=6.4),
    "one kernel alone, by longer samples": rank(3, lambda _, place: 3.0 if place == 0 else 1.0),
    "a late host": rank(3, lambda _, __: 1.0, late_us=240),
}


@pytest.mark.parametrize("why", OTHERS)
def test_a_rank_that_is_late_for_another_reason_has_no_slow_device(why: str) -> None:
    found = said([*map(equal, range(3)), OTHERS[why]])
    assert "slow-device" not in codes(found)
    assert codes(found)[0] == "straggling-rank"


def test_now_this_rank_and_now_that_is_uneven_work() -> None:
    def turns(number: int) -> Time:
        return lambda at, _: 1.8 if at % 4 == number else 1.0

    assert codes(said([rank(number, turns(number)) for number in range(4)]))[0] == "rank-imbalance"


LUCK: dict[str, tuple[float, ...]] = {  # times as long in each step: longest in six and seven of eight
    "six of eight": (2.5, 1.05, 2.2, 0.6, 2.0, 1.1, 0.6, 2.4),
    "seven of eight": (2.5, 1.04, 1.1, 2.2, 0.5, 1.05, 1.8, 1.06),
}


@pytest.mark.parametrize("times", LUCK.values(), ids=LUCK)
def test_uneven_work_of_two_ranks_is_no_slow_device_by_luck(times: tuple[float, ...]) -> None:
    found = said([equal(0), rank(1, lambda at, _: times[at])])
    assert "slow-device" not in codes(found)
    assert codes(found)


def test_a_slow_device_need_not_be_as_slow_in_every_step() -> None:
    found = said([equal(0), equal(1), rank(2, lambda at, _: 1.6 if at % 3 else 1.4)])
    assert codes(found) == ["slow-device"]


def test_equal_ranks_have_nothing_of_it() -> None:
    assert codes(said([*map(equal, range(4))])) == []


def test_how_many_times_slower_by_hand() -> None:
    usual = {("gemm", 400): (10, 1000), ("relu", 400): (10, 500)}
    slow = {("gemm", 400): (10, 1400), ("relu", 400): (10, 700)}
    other = {("gemm", 400): (20, 2000), ("relu", 400): (10, 500)}
    steps = [10.0] * 4
    assert slower([Computed(steps, usual), Computed(steps, usual), Computed([14.0] * 4, slow)]) == [1.0, 1.0, 1.4]
    assert slower([Computed(steps, usual), Computed(steps, other)]) == [None, None]
    assert slower([Computed(steps, usual)]) == [None]
