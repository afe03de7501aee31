"""What a rule looks at: an analysis, what is known of the run that made it, and the limits in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracelock.analysis.model import Analysis
from tracelock.diagnosis.thresholds import Thresholds

Samples = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Case:
    """Everything that a diagnosis may rest on; what is not known is empty or None."""

    analysis: Analysis
    settings: Mapping[str, Any] = field(default_factory=dict)  # in force while the trace was recorded
    run: Mapping[str, Any] | None = None  # run.json
    samples: Samples | None = None  # columns of samples.csv
    limits: Thresholds = field(default_factory=Thresholds)

    @property
    def step_us(self) -> float | None:
        """Return the mean duration of a step, microseconds."""
        return self.analysis.step.mean_us or None

    @property
    def steps(self) -> int:
        """Return how many steps are complete in the trace."""
        return sum(step.complete for step in self.analysis.steps) if self.has_steps else 0

    @property
    def has_steps(self) -> bool:
        """Return whether the trace marks its steps."""
        return self.analysis.step.source == "ProfilerStep"

    @property
    def has_gpu(self) -> bool:
        """Return whether the trace holds work of an accelerator."""
        return bool(self.analysis.gpus)

    @property
    def cores(self) -> int | None:
        """Return how many cores the run could use, where its facts say so."""
        cores = (self.run or {}).get("cores")
        return int(cores) if isinstance(cores, int) and cores > 0 else None

    def share(self, time_us: float | None) -> float | None:
        """Return a time per step as a part of the mean step."""
        step = self.step_us
        return None if time_us is None or step is None else min(1.0, max(0.0, time_us / step))

    def setting(self, name: str) -> Any:
        """Return a setting in force, or None where it is not known."""
        return self.settings.get(name)
