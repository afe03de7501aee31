"""What every benchmark is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.bench.generate import write_trace
from tests.bench.measure import CACHE


@dataclass(frozen=True)
class Options:
    """The trace to measure with: one of the user's, or a generated one of a size in 10**6 bytes."""

    trace: Path | None
    megabytes: float

    def path(self) -> Path:
        """Return the trace, generating it if need be."""
        return self.trace or generated(self.megabytes)


def generated(megabytes: float) -> Path:
    """Return a generated trace of a size; it is kept in .cache/bench for the next time."""
    path = CACHE / f"generated-{megabytes:g}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write_trace(part, megabytes)
        part.rename(path)
    return path
