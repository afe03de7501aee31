"""When the warm-up is over, and how many steps are timed and recorded then. Knows nothing of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

WARMUP_LEAST, WARMUP_MOST, WARMUP_MOST_S = 3, 50, 300.0
TIMED_LEAST, TIMED_MOST, TIMED_S = 10, 100, 5.0
TIMED_FEWEST = 3  # where a limit leaves time for no more
TIMED_UNKNOWN = 20  # at most, where nobody knows how many steps are to come
SHORT_EPOCH = 20
ACTIVE = 3
PROFILER_WARMUP = 1


@dataclass(frozen=True)
class Schedule:
    """The steps of a run, by number from 0: timed from `timed` on, recorded from `window` on, over before `end`."""

    timed: int
    window: int
    end: int

    def plain(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return asdict(self)


def is_steady(step_s: Sequence[float]) -> bool:
    """Return whether the steps have stopped getting faster.

    Two neighbours within 25 % are steady from the third step on, medians of three within 10 % from the sixth on; after
    50 steps or five minutes the wait is over: steps that vary that much never become steady.
    """
    count = len(step_s)
    if count < WARMUP_LEAST:
        return False
    if count >= WARMUP_MOST or sum(step_s) > WARMUP_MOST_S:
        return True
    last, former = step_s[-1], step_s[-2]
    if abs(last - former) <= 0.25 * min(last, former):
        return True
    return count >= 6 and median(step_s[-3:]) >= 0.9 * median(step_s[-6:-3])


def plan(
    done: int,
    step_s: float,
    epoch: int | None,
    timed: int | None,
    active: int | None,
    left_s: float | None = None,
) -> Schedule:
    """Return what follows after `done` steps of warm-up.

    Parameters
    ----------
    step_s
        Length of a steady step, seconds.
    epoch
        Steps of an epoch, None if that is not known. A short one is timed and recorded as a whole, since the start
        of its workers weighs in each of them.
    timed, active
        Numbers that somebody asked for.
    left_s
        Seconds that timed and recorded steps may take; where they are longer, fewer are timed, but three.
    """
    short = epoch is not None and epoch < SHORT_EPOCH
    if timed is None:
        timed = max(1, epoch) if short and epoch is not None else _timed(done, step_s, epoch)
    if active is None:
        active = max(ACTIVE, epoch or 0) if short else ACTIVE
    if left_s is not None:
        timed = min(timed, max(TIMED_FEWEST, int(left_s / max(step_s, 1e-6)) - PROFILER_WARMUP - active))
    return Schedule(done, done + timed, done + timed + PROFILER_WARMUP + active)


def _timed(done: int, step_s: float, epoch: int | None) -> int:
    """Return five seconds' worth of steps, 10 to 100, such that the window still fits into the epoch."""
    wanted = int(TIMED_S / max(step_s, 1e-6))
    most = TIMED_UNKNOWN if epoch is None else min(TIMED_MOST, epoch - done % epoch - PROFILER_WARMUP - ACTIVE)
    return max(TIMED_LEAST, min(wanted, most))
