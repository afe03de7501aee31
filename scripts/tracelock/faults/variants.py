"""Ways in which a recording is poorer than it should be: what a diagnosis must bear without being surely wrong."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.kineto import Style
from tracelock.io import write_bytes

STEPS = 8


@dataclass(frozen=True)
class Variant:
    """One way; `spoil` is done to the file that was written. Shapes are in no simulated trace."""

    name: str
    style: Style
    recorded: int = STEPS
    noise: float | None = None  # sigma of the logarithm of every host time
    facts: bool = False  # the run's facts are given beside the trace
    spoil: Callable[[Path], None] | None = None

    def of(self, job: Job) -> Job:
        """Return the job as it is recorded."""
        return job if self.noise is None else replace(job, machine=replace(job.machine, noise=self.noise))


def cut_in_half(path: Path) -> None:
    """Leave the first half of the trace's text, as a full disk does."""
    text = gzip.decompress(path.read_bytes())
    write_bytes(path, gzip.compress(text[: len(text) // 2], compresslevel=3, mtime=0))


FULL = Style(with_stack=True, profile_memory=True)
PLAIN = Variant("plain", FULL, facts=True)
POORER: tuple[Variant, ...] = (
    Variant("no run beside the trace", FULL),
    Variant("no steps", replace(FULL, with_steps=False)),
    Variant("one step", FULL, recorded=1),
    Variant("no stacks", replace(FULL, with_stack=False)),
    Variant("no memory", replace(FULL, profile_memory=False)),
    Variant("noise of 20 %", FULL, noise=0.2, facts=True),
    Variant("whole microseconds", replace(FULL, whole_microseconds=True)),
    Variant("cut in half", FULL, spoil=cut_in_half),
)
