"""Tells when steps have become slower than their own past by more than their noise."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from statistics import median, quantiles

RECENT = 10  # steps that must agree
PAST, PAST_LEAST = 200, 20
LEAST_RATIO = 1.10
FIRST_LEFT_OUT = 5  # a warm-up is no past to compare with
_SIGMA = 1.4826  # of the median absolute deviation, for a normal distribution


@dataclass(frozen=True)
class Slowdown:
    """Steps from `step` on take `after_us` instead of `before_us` (medians)."""

    step: int
    end_s: float
    before_us: float
    after_us: float


class Detector:
    """Looks at one step after the other.

    The median of the last 10 must exceed that of up to 200 before them by a tenth and by four standard errors of such a
    median, and nine of them the third quartile of the past: by chance that is rare (3e-5 where steps are independent),
    and single slow steps, of a checkpoint or an evaluation, do not count.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, float, float]] = deque(maxlen=RECENT)
        self._past: deque[float] = deque()
        self._sorted: list[float] = []  # the past in the order of size, so that a step costs no sorting of it
        self._left_out = 0

    def add(self, step: int, end_s: float, length_us: float) -> Slowdown | None:
        """Return the change that shows with this step, or None."""
        if self._left_out < FIRST_LEFT_OUT:
            self._left_out += 1
            return None
        if len(self._recent) == RECENT:
            self._remember(self._recent[0][2])
        self._recent.append((step, end_s, length_us))
        found = self._look() if len(self._past) >= PAST_LEAST else None
        if found is not None:
            self._sorted.clear()
            self._past.clear()  # the new pace is the past from here on
            self._recent.clear()
        return found

    def _remember(self, length_us: float) -> None:
        self._past.append(length_us)
        insort(self._sorted, length_us)
        if len(self._past) > PAST:
            del self._sorted[bisect_left(self._sorted, self._past.popleft())]

    def _look(self) -> Slowdown | None:
        past, count = self._sorted, len(self._sorted)
        before = (past[(count - 1) // 2] + past[count // 2]) / 2
        after = median(each[2] for each in self._recent)
        if after < LEAST_RATIO * before:
            return None
        spread = _SIGMA * median(abs(each - before) for each in past)
        if after - before < 4 * 1.25 * spread / RECENT**0.5:
            return None
        upper = quantiles(past, n=4)[2]
        slow = [each for each in self._recent if each[2] > upper]
        if len(slow) < RECENT - 1:
            return None
        return Slowdown(slow[0][0], slow[0][1], before, after)
