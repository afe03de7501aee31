"""A DataLoader as PyTorch's: batches made by the main process, or by workers with a queue of batches ahead.

Worker i makes batches i, i + workers, ...; at most ``prefetch_factor`` batches a worker are asked for ahead; batches
are handed out in order. Times are integer nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable


class Workers:
    """The queue of worker processes during one epoch.

    Parameters
    ----------
    started
        When the epoch's iterator was made.
    start_up
        How long a worker needs until it can begin, 0 for workers that are still there.
    cost
        Returns the time that the next batch costs a worker.
    """

    def __init__(self, count: int, prefetch: int, started: int, start_up: int, cost: Callable[[], int]) -> None:
        self.count, self.cost = count, cost
        self.free = [started + start_up] * count
        self.ready: list[int] = []
        self.taken = 0
        for _ in range(count * prefetch):
            self._ask(started)

    def _ask(self, now: int) -> None:
        worker = len(self.ready) % self.count
        self.free[worker] = max(self.free[worker], now) + self.cost()
        self.ready.append(self.free[worker])

    def next_ready(self, now: int) -> int:
        """Return when the next batch can be taken by a loop that asks at `now`, and have one more made."""
        at = max(now, self.ready[self.taken])
        self.taken += 1
        self._ask(at)
        return at
