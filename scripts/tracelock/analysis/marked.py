"""The complete steps that a trace marks, as the host saw them: what figures per step rest on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracelock.analysis.steps import MARKED, Windows
from tracelock.trace.columns import Int64


@dataclass(frozen=True)
class HostSteps:
    """Steps in order of time, shape (n,) each; ns; n = 0 where none is marked."""

    names: tuple[str, ...]
    start: Int64
    end: Int64
    place: Int64  # among all steps of the trace, those that are not complete included

    def __len__(self) -> int:
        return len(self.names)

    def of(self, times: Int64) -> Int64:
        """Return the step that each of `times` lies in, -1 without."""
        if not len(self):
            return np.full(len(times), -1, np.int64)
        step = np.searchsorted(self.start, times, side="right") - 1
        return np.where((step >= 0) & (times < self.end[step]), step, -1)

    def until(self, time: int) -> HostSteps:
        """Return the steps that end by `time`."""
        count = int(np.searchsorted(self.end, time, side="right"))
        return HostSteps(self.names[:count], self.start[:count], self.end[:count], self.place[:count])


def host_steps(windows: Windows) -> HostSteps:
    """Return the steps of `windows` that are complete and marked in the trace."""
    kept = np.flatnonzero(windows.complete) if windows.source == MARKED else np.empty(0, np.intp)
    names = tuple(windows.names[step] for step in kept)
    return HostSteps(names, windows.host_start[kept], windows.host_end[kept], kept)
