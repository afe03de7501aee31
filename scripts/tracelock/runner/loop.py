"""The training loop: batches over the ends of epochs, times of each step, and what cuts it short."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tracelock.runner.failure import EmptyLoaderError
from tracelock.runner.outside.cores import Queue, in_us
from tracelock.runner.protocol import Limits
from tracelock.runner.workload import Workload, count_samples, label

_END = object()


class Feed:
    """Gives one batch after the other, as nested ``for`` loops over epochs and batches would."""

    def __init__(self, workload: Workload) -> None:
        self._loader = workload.loader
        self._iterator: Iterator[Any] | None = None
        self.epochs = 0

    def next(self) -> Any:
        """Return the next batch, labelled ``data_loading`` in the trace.

        The end of an epoch, with the end and start of its workers, is part of the step that meets it.
        """
        with label("data_loading"):
            batch = next(self._iterator or self._begin(), _END)
            if batch is _END:
                # As in a for loop: the old workers, unless they persist, end before the new ones start. That is
                # why StopIteration is not caught here: its traceback would keep the old iterator.
                self._iterator = None
                batch = next(self._begin(), _END)
        if batch is _END:
            raise EmptyLoaderError
        return batch

    def close(self) -> None:
        """Let go of the loader's workers."""
        self._iterator = None

    def _begin(self) -> Iterator[Any]:
        self._iterator = iter(self._loader)
        self.epochs += 1
        return self._iterator


class Budget:
    """Says when the bounds on time and steps cut a part of the run, and which one did.

    Parameters
    ----------
    limits
        ``max_duration_s`` counts from here on; ``max_steps`` counts the steps of all parts together.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._started = time.monotonic()
        self.steps = 0

    def cut(self, keep_steps: int = 0, keep_s: float = 0.0) -> str | None:
        """Return the bound that forbids another step, or None.

        Parameters
        ----------
        keep_steps, keep_s
            Steps and seconds to leave for what comes after this part.
        """
        limits = self._limits
        if limits.max_steps is not None and self.steps >= limits.max_steps - keep_steps:
            return "max_steps"
        if limits.max_duration_s is None:
            return None
        left = limits.max_duration_s - (time.monotonic() - self._started)
        # What comes after never takes more than half of the time from what comes before.
        return "max_duration_s" if left <= min(keep_s, limits.max_duration_s / 2) else None


@dataclass
class Steps:
    """What was measured of a series of steps; times in nanoseconds.

    Parameters
    ----------
    step_ns
        Host time of each step, loading included.
    loading_ns
        Host time in ``next(loader)`` of each step.
    queued_ns
        Of each step, how long its thread was ready to run and other programs had the cores; None where the system
        does not tell.
    duration_ns
        Host time of the whole series, with the device idle at both ends.
    samples
        Samples in all batches, None where one could not be counted.
    epoch_starts
        The steps, from 0, whose batch was the first of an epoch.
    """

    step_ns: list[int] = field(default_factory=list)
    loading_ns: list[int] = field(default_factory=list)
    queued_ns: list[int | None] = field(default_factory=list)
    duration_ns: int = 0
    samples: int | None = 0
    stopped_by: str | None = None
    epoch_starts: list[int] = field(default_factory=list)
    _events: list[tuple[Any, Any]] = field(default_factory=list)
    _losses: list[Any] = field(default_factory=list)

    @property
    def mean_ns(self) -> float:
        """Mean host time of a step, 0 before the first."""
        return sum(self.step_ns) / len(self.step_ns) if self.step_ns else 0.0

    def queued_us(self) -> list[float] | None:
        """Return `queued_ns` in µs, or None if it is not known of a step."""
        return in_us(self.queued_ns)

    def device_us(self) -> list[float] | None:
        """Return the time between the device's own marks around each step, in µs, or None without a GPU."""
        return [began.elapsed_time(ended) * 1000 for began, ended in self._events] if self._events else None

    def losses(self) -> list[float] | None:
        """Return the loss of each step, or None if a step gave none."""
        if any(not isinstance(loss, (torch.Tensor, int, float)) for loss in self._losses):
            return None
        scalars = [torch.as_tensor(loss).float() for loss in self._losses]
        if not scalars or any(scalar.numel() != 1 for scalar in scalars):
            return None
        return [float(value) for value in torch.stack([scalar.reshape(()) for scalar in scalars]).tolist()]


class Loop:
    """Runs steps of a workload and measures them."""

    def __init__(self, workload: Workload, device: str, budget: Budget) -> None:
        self.feed = Feed(workload)
        self._workload = workload
        self._device = device
        self._budget = budget
        self._queue = Queue()

    def run(self, count: int, keep_steps: int = 0, after: Callable[[], object] | None = None) -> Steps:
        """Run up to `count` steps, leaving `keep_steps` of the budget for what comes after.

        Parameters
        ----------
        after
            Is called between steps, and after the last one of all `count`, outside of their times.
        """
        steps = Steps()
        self.synchronize()
        began = time.perf_counter_ns()
        steps.stopped_by = self._budget.cut(keep_steps)
        while len(steps.step_ns) < count and not steps.stopped_by:
            self._step(steps)
            if len(steps.step_ns) < count:
                # Profiled steps take longer than timed ones; twice their time is kept for them.
                steps.stopped_by = self._budget.cut(keep_steps, 2e-9 * steps.mean_ns * keep_steps)
            # Not when a bound cuts the series: the profiler would record the mere beginning of another step.
            if after and not steps.stopped_by:
                after()
        self.synchronize()
        steps.duration_ns = time.perf_counter_ns() - began
        return steps

    def synchronize(self) -> None:
        """Wait until the device has nothing left to do."""
        if self._device != "cpu":
            torch.cuda.synchronize()

    def _step(self, steps: Steps) -> None:
        mark = self._mark()
        self._queue.lap()
        began = time.perf_counter_ns()
        epochs = self.feed.epochs
        batch = self.feed.next()
        loaded = time.perf_counter_ns()
        if self.feed.epochs > epochs:
            steps.epoch_starts.append(len(steps.step_ns))
        loss = self._workload.step(batch)
        ended = time.perf_counter_ns()
        steps.queued_ns.append(self._queue.lap())
        if mark:
            steps._events.append((mark, self._mark()))
        self._budget.steps += 1
        steps.step_ns.append(ended - began)
        steps.loading_ns.append(loaded - began)
        # Its graph would keep the activations of every step.
        steps._losses.append(loss.detach() if isinstance(loss, torch.Tensor) else loss)
        samples = count_samples(self._workload, batch)
        steps.samples = None if steps.samples is None or samples is None else steps.samples + samples

    def _mark(self) -> Any:
        """Let the device note the time when it gets here, and return the note; None without a GPU."""
        if self._device == "cpu":
            return None
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event
