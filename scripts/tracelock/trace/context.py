"""What the batches of one reader refer to: dictionaries, labels, counts."""

from __future__ import annotations

from typing import Any

from tracelock.trace.dictionary import Collectives, Stacks, Texts, Tracks
from tracelock.trace.tally import Tally


class Context:
    """Dictionaries that ids in batches refer to, and everything else that events tell."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.texts = Texts(self.tally)
        self.stacks = Stacks(self.texts)
        self.tracks = Tracks()
        self.collectives = Collectives()
        self.labels: dict[tuple[Any, Any], dict[str, str]] = {}  # (pid, tid) or (pid, None) → names from ph M
        self.unused: dict[str, int] = {}  # events that no table holds, by phase
        self.spans: list[tuple[int, int]] = []  # the profiler's own windows, start and end in ns
        self.events = 0

    def skip(self, phase: str, count: int = 1) -> None:
        """Count events that no table holds."""
        self.unused[phase] = self.unused.get(phase, 0) + count
        if phase in "BE":
            self.tally.add("begin-end-rows", count)

    def mark(self) -> tuple[dict[str, int], dict[str, int], int]:
        """Return the state of all counts, for `rewind`."""
        return self.tally.counts(), dict(self.unused), len(self.spans)

    def rewind(self, mark: tuple[dict[str, int], dict[str, int], int]) -> None:
        """Take back what was counted since `mark`; dictionaries keep what they have, which does no harm."""
        counts, self.unused, spans = mark
        self.tally.reset(counts)
        del self.spans[spans:]
