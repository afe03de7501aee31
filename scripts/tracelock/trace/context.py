"""What the batches of one reader refer to: dictionaries, labels, counts."""

from __future__ import annotations

from typing import Any, TypeAlias

from tracelock.trace.dictionary import Collectives, Stacks, Texts, Tracks
from tracelock.trace.pairs import Open, Pairs
from tracelock.trace.tally import Tally

Mark: TypeAlias = tuple[dict[str, int], dict[str, int], int, dict[tuple[Any, Any], list[Open]]]


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
        self.pairs = Pairs()
        self.events = 0

    def skip(self, phase: str, count: int = 1) -> None:
        """Count events that no table holds."""
        self.unused[phase] = self.unused.get(phase, 0) + count

    def passed_halves(self, before: dict[str, int]) -> bool:
        """Return whether begin or end events were passed over since `before`, the counts of a `mark`."""
        return any(self.unused.get(phase, 0) > before.get(phase, 0) for phase in "BE")

    def mark(self) -> Mark:
        """Return the state of all counts, for `rewind`."""
        return self.tally.counts(), dict(self.unused), len(self.spans), self.pairs.copy()

    def rewind(self, mark: Mark) -> None:
        """Take back what was counted since `mark`; dictionaries keep what they have, which does no harm."""
        counts, unused, spans, self.pairs.open = mark
        self.unused = dict(unused)
        self.pairs.open = {lane: list(waiting) for lane, waiting in self.pairs.open.items()}
        self.tally.reset(counts)
        del self.spans[spans:]
