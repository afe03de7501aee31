"""Whether a rank's device is slower than the others': the same kernels, as often, take it longer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import TypeAlias

import numpy as np

from tracelock.analysis.groups import group
from tracelock.analysis.names import is_collective_kernel, matching
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.selection import take
from tracelock.trace.columns import DeviceKind

Work: TypeAlias = Mapping[tuple[str, int], tuple[int, int]]  # kernel and size of its grid: calls, ns

SAME = 0.8  # of a rank's time in kernels: less than that in common is other work
LONGER = 1.02  # times: a kernel that takes longer than that is slower
NEARLY_ALL = 0.8  # of the time in kernels that are the same: a clock slows all of them
MOST_STEPS = 0.75  # in which the rank computes longest: one that is slower now and then has other work
STEADY = 4.0  # standard errors that the mean excess of its steps is above none: uneven work has it once in 200 traces
FEW_STEPS = 3  # fewer cannot tell how steady it is


@dataclass(frozen=True)
class Computed:
    """What one rank's device computed."""

    steps_us: Sequence[float]  # in each step
    kernels: Work


def kernels_by_grid(known: Prepared) -> Work:
    """Return the kernels of the complete steps but those of collectives, by name and blocks per multiprocessor."""
    trace, windows = known.trace, known.windows
    extent = windows.extent()
    if extent is None or not len(trace.device):
        return {}
    rows = trace.device
    chosen = (rows.kind == DeviceKind.KERNEL) & ~matching(trace.texts, rows.name, is_collective_kernel)
    chosen &= (rows.start >= extent[0]) & (rows.start < extent[1])
    rows = take(rows, chosen)
    grid = np.nan_to_num(rows.blocks_per_sm * 100, nan=-1.0).astype(np.int64)
    groups = group(rows.name.astype(np.int64), grid)
    total = groups.total(rows.duration)
    return {
        (trace.texts[int(name)], int(size)): (int(count), int(time))
        for name, size, count, time in zip(*groups.keys, groups.counts, total, strict=True)
    }


def slower(ranks: Sequence[Computed]) -> list[float | None]:
    """Return for each rank how many times as long its device takes for the same work as the others' in the middle.

    1 where it is as fast or faster, and None where it cannot be told: too little of what the ranks compute is the same,
    by kernel, grid and number of calls.
    """
    common = set.intersection(*(set(each.kernels) for each in ranks)) if len(ranks) > 1 else set()
    same = [key for key in common if len({each.kernels[key][0] for each in ranks}) == 1]
    return [_slower(at, ranks, same) for at in range(len(ranks))]


def _slower(at: int, ranks: Sequence[Computed], same: Sequence[tuple[str, int]]) -> float | None:
    mine, others = ranks[at], [each for place, each in enumerate(ranks) if place != at]
    own = {key: mine.kernels[key][1] for key in same}
    usual = {key: median(each.kernels[key][1] for each in others) for key in same}
    whole = sum(time for _, time in mine.kernels.values())
    if not whole or sum(own.values()) < SAME * whole or not sum(usual.values()):
        return None
    ratio = sum(own.values()) / sum(usual.values())
    longer = sum(time for key, time in own.items() if time >= LONGER * usual[key])
    if ratio <= LONGER or longer < NEARLY_ALL * sum(own.values()) or not _steadily_longest(at, ranks):
        return 1.0
    return ratio


def _steadily_longest(at: int, ranks: Sequence[Computed]) -> bool:
    """Return whether a rank computes longest in most steps, and by about as much in each.

    Of two ranks with uneven work one is longest in six of eight steps by chance in a quarter of all recordings.
    """
    if len({len(each.steps_us) for each in ranks}) != 1 or not ranks[at].steps_us:
        return False
    steps = list(zip(*(each.steps_us for each in ranks), strict=True))
    pairs = [(step[at], median(step[:at] + step[at + 1 :])) for step in steps]
    if sum(mine > LONGER * usual for mine, usual in pairs) < MOST_STEPS * len(pairs):
        return False
    ratios = [math.log(mine / usual) for mine, usual in pairs if mine > 0 and usual > 0]
    if len(ratios) < FEW_STEPS:
        return True
    return fmean(ratios) > STEADY * stdev(ratios) / math.sqrt(len(ratios))
