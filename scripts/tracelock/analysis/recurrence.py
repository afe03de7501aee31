"""Whether gaps come back at the same place of a step: a program does again what it did there, a disturbance roams."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from tracelock.analysis.marked import HostSteps
from tracelock.analysis.places import Places
from tracelock.trace.columns import Int32, Int64

Gap: TypeAlias = tuple[int, int, int]  # step, start, end; ns
Place: TypeAlias = tuple[int, int]  # the operator before it, by name, and the how many-th of that name in the step

OFTEN = 3  # steps: two of eight gaps meet at one place of a hundred now and then, three hardly ever


def returning(places: Places, steps: HostSteps, gaps: Sequence[Gap]) -> list[bool]:
    """Return for each gap whether it comes back: after the same operator of the thread in other steps, too.

    In `OFTEN` of them or more, or in every k-th step, as far as the trace shows.
    """
    host, outer = places.known.trace.host, places.outer
    rows = (host.start[outer], host.name[outer])
    at = [_place(rows, int(steps.start[gap[0]]), gap) for gap in gaps]
    by_place: dict[Place, set[int]] = {}
    for place, gap in zip(at, gaps, strict=True):
        by_place.setdefault(place, set()).add(gap[0])
    found = {place: len(some) >= OFTEN or is_periodic(some, len(steps)) for place, some in by_place.items()}
    return [found[place] for place in at]


def is_periodic(found: Collection[int], steps: int) -> bool:
    """Return whether steps, by number, come every k-th step, k from 2 on, with none of `steps` left out."""
    return period(found, steps) is not None


def period(found: Collection[int], steps: int) -> int | None:
    """Return k where steps come every k-th step, k from 2 on, with none of `steps` left out; None otherwise."""
    numbers = sorted(set(found))
    apart = {later - earlier for earlier, later in pairwise(numbers)}
    if len(numbers) < 2 or len(apart) != 1:
        return None
    (every,) = apart
    whole = numbers[0] - every < 0 and numbers[-1] + every >= steps
    return every if whole and every > 1 else None


def _place(rows: tuple[Int64, Int32], step_start: int, gap: Gap) -> Place:
    """Return the place of a gap, by start and name of the thread's operators."""
    start, name = rows
    first, after = np.searchsorted(start, [step_start, (gap[1] + gap[2]) // 2]).tolist()
    if after <= first:
        return -1, 0
    before = int(name[after - 1])
    return before, int((name[first:after] == before).sum())
