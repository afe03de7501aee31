"""What a rule looks at: an analysis, what is known of the run that made it, and the limits in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from tracelock.analysis.costs import Bounds, Costs
from tracelock.analysis.model import Analysis
from tracelock.analysis.ranks import Ranks
from tracelock.analysis.steps import MARKED
from tracelock.diagnosis.thresholds import Thresholds

# What the profiler adds to the host for a row at most; 0.2 to 1.1 µs were measured, most where it records stacks.
MOST_A_ROW_US = 1.0

Samples = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Removal:
    """The times that removing a cause takes out of a step at most, microseconds: see `Bounds.gain`.

    `most` is what all of it together can save, where that is less than the sum: an optimizer in one kernel takes time
    off both chains, and the step gets shorter by that of one of them.
    """

    device: float = 0.0
    host: float = 0.0
    waiting: float = 0.0
    most: float | None = None

    def __add__(self, other: Removal) -> Removal:
        most = None if self.most is None and other.most is None else self.cap + other.cap
        return Removal(self.device + other.device, self.host + other.host, self.waiting + other.waiting, most)

    @property
    def cap(self) -> float:
        """Return what the removal can save at most, whatever the chains."""
        return self.device + self.host + self.waiting if self.most is None else self.most


@dataclass(frozen=True)
class Case:
    """Everything that a diagnosis may rest on; what is not known is empty or None."""

    analysis: Analysis
    settings: Mapping[str, Any] = field(default_factory=dict)  # in force while the trace was recorded
    run: Mapping[str, Any] | None = None  # run.json
    samples: Samples | None = None  # columns of samples.csv
    limits: Thresholds = field(default_factory=Thresholds)
    ranks: Ranks | None = None  # this trace beside those of the other ranks

    @property
    def costs(self) -> Costs | None:
        """Return what holds the step up, None where it could not be computed."""
        return self.analysis.costs

    @cached_property
    def bounds(self) -> Bounds:
        """Return the two chains of a step as they are without the profiler.

        The profiler slows the host, not the device; what it added is taken off the host's chain. Where no run tells
        how much that is, a step on the CPU may be shorter by `MOST_A_ROW_US` for each row: shares of a profiled step
        are no bounds.
        """
        if self.costs is None:
            return Bounds(0.0, None, 0.0, 0.0)
        bounds, overhead = self.costs.bounds, self.overhead
        if overhead is None and bounds.device_us is None and self.steps:
            recorded = MOST_A_ROW_US * self.analysis.trace.events / self.steps
            overhead = bounds.step_us / max(bounds.step_us / 2, bounds.step_us - recorded) if bounds.step_us else None
        if overhead is None or overhead <= 1.0:
            return bounds
        step = max(bounds.step_us / overhead, bounds.device_us or 0.0)
        return replace(bounds, step_us=step, host_us=max(0.0, bounds.host_us - (bounds.step_us - step)))

    @property
    def overhead(self) -> float | None:
        """Return profiled by timed step, None where no run tells it."""
        ratio = ((self.run or {}).get("profiled") or {}).get("overhead_ratio")
        return float(ratio) if isinstance(ratio, int | float) else None

    @property
    def queued_us(self) -> float | None:
        """Return how long other programs had the core of a recorded step, mean; None where no run tells it."""
        values = ((self.run or {}).get("profiled") or {}).get("queued_us")
        return fmean(map(float, values)) if values else None

    @property
    def inflation(self) -> float:
        """Return the profiled step in units of `bounds`, 1 or more."""
        step = self.bounds.step_us
        return max(1.0, self.costs.bounds.step_us / step) if self.costs and step else 1.0

    def expected(self, removal: Removal) -> float:
        """Return the part of the step that `removal` is expected to save.

        On the CPU rows of a trace are as much slower as the step is, so that their share stays; a bound assumes that
        all of the profiler's time lies elsewhere. So several bounds together exceed a step, and what is expected does
        not.
        """
        if self.has_gpu or self.costs is None or not self.costs.bounds.step_us:
            return self.gain(removal)
        return min(1.0, max(0.0, removal.cap / self.costs.bounds.step_us))

    def gain(self, removal: Removal) -> float:
        """Return the part of the step, 0..1, that can be saved at most without `removal`."""
        gain = self.bounds.gain(removal.device, removal.host, removal.waiting)
        return min(gain, removal.cap / self.bounds.step_us) if self.bounds.step_us else 0.0

    @property
    def step_us(self) -> float | None:
        """Return the mean duration of a step, microseconds."""
        return self.analysis.step.mean_us or None

    @property
    def steps(self) -> int:
        """Return how many steps are complete in the trace; 0 where it marks none."""
        return self.analysis.step.count if self.has_steps else 0

    @property
    def has_steps(self) -> bool:
        """Return whether the trace marks its steps."""
        return self.analysis.step.source == MARKED

    @property
    def has_gpu(self) -> bool:
        """Return whether the trace holds work of an accelerator."""
        return bool(self.analysis.gpus)

    @property
    def cores(self) -> int | None:
        """Return how many cores the run could use, where its facts say so."""
        cores = (self.run or {}).get("cores")
        return cores if isinstance(cores, int) and cores > 0 else None

    def timed(self, name: str) -> list[float]:
        """Return a series of the run's timed steps, empty where there is no run: ``step_us``, ``loading_us``."""
        values = ((self.run or {}).get("timed") or {}).get(name)
        return [float(value) for value in values] if values else []

    def timed_mean(self, name: str) -> float | None:
        """Return the mean of such a series, None where it is not known."""
        values = self.timed(name)
        return fmean(values) if values else None

    def column(self, name: str) -> list[float]:
        """Return the numbers of a column of the samples, those that are known."""
        values = (self.samples or {}).get(name, ())
        return [float(value) for value in values if isinstance(value, int | float)]

    def share(self, time_us: float | None) -> float | None:
        """Return a time per step as a part of the mean step."""
        step = self.step_us
        return None if time_us is None or step is None else min(1.0, max(0.0, time_us / step))

    def setting(self, name: str) -> Any:
        """Return a setting in force, or None where it is not known."""
        return self.settings.get(name)
