"""Counts steps and keeps their times. Knows nothing of torch."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .cores import Queue

KEPT = 100_000
KEPT_WATCHED = 1_000


@dataclass(slots=True)
class Step:
    """One step: from the end of the one before it to its own. Nanoseconds."""

    number: int
    began: int
    ended: int
    loading: int = 0  # in next() of DataLoaders, in the thread that trains
    starting: int = 0  # in iter() of DataLoaders: the start of their workers
    queued: int | None = None  # ready to run while other programs had the cores
    skipped: bool = False
    samples: int | None = None
    batches: dict[int, int] = field(default_factory=dict)  # by loader

    @property
    def length(self) -> int:
        """Nanoseconds of the step."""
        return self.ended - self.began


class Tally:
    """The steps so far. `count` counts all; `kept` holds the first of them.

    Parameters
    ----------
    watched
        Each step is streamed and costs as little as can be: few are kept, and how long they waited for a core is left
        out, which is a call of the system for each.
    """

    def __init__(self, watched: bool = False) -> None:
        self._keep = KEPT_WATCHED if watched else KEPT
        self.count = 0
        self.skipped = 0
        self.kept: list[Step] = []
        self._current = Step(0, time.perf_counter_ns(), 0)
        self._begun = False
        self._queue = None if watched else Queue()
        self._lap()

    def loaded(self, loader: int, began: int, ended: int, samples: int | None) -> None:
        """Note a batch that the loop waited for."""
        step = self._current
        if not self._begun and not step.batches and not step.starting:
            step.began = began  # what came before was no part of the first step
        self._begun = True
        step.loading += ended - began
        step.batches[loader] = step.batches.get(loader, 0) + 1
        if samples is not None:
            step.samples = (step.samples or 0) + samples

    def started(self, began: int, ended: int) -> None:
        """Note the start of a loader's iterator."""
        if not self._begun and not self._current.starting:
            self._current.began = began
        self._begun = True
        self._current.starting += ended - began

    def skip(self) -> None:
        """Note that the current step left the model alone."""
        self._current.skipped = True

    def end_step(self, now: int) -> Step:
        """Return the step that ends now."""
        step = self._current
        step.ended = now
        step.queued = self._lap()
        self._begun = True
        self.count += 1
        self.skipped += step.skipped
        if len(self.kept) < self._keep:
            self.kept.append(step)
        self._current = Step(self.count, now, 0)
        return step

    def resume(self, now: int) -> None:
        """Let the current step begin now: what we did meanwhile is not the script's time."""
        self._current.began = now
        self._lap()

    def _lap(self) -> int | None:
        return None if self._queue is None else self._queue.lap()
