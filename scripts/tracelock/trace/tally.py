"""What was excluded, mended or not understood, by code; and what that makes of the trace's quality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from tracelock.trace.columns import Quality, TraceWarning

Weight = Literal["note", "mended", "lost", "cut"]


class Kind(NamedTuple):
    """A code's weight, and its message, in which ``{n}`` is the count."""

    weight: Weight
    message: str


KINDS: Final[dict[str, Kind]] = {
    # The file ends early.
    "cut-off": Kind("cut", "the file ends in the middle: the events after that point are unknown ({n} place)"),
    "archive-cut-off": Kind("cut", "the compressed data ends early or is corrupt: read as far as it goes"),
    "no-events": Kind("cut", "the file has no traceEvents: nothing is known of what ran"),
    # Text that was mended; the event was kept.
    "bad-number": Kind("mended", "{n} values that are no JSON numbers (NaN, Infinity, inf, N/A, ...) read as absent"),
    "huge-number": Kind("mended", "{n} numbers beyond 64 bits read as absent"),
    "bad-escape": Kind("mended", "{n} invalid escapes in texts (such as Windows paths) read as they stand"),
    "control-character": Kind("mended", "{n} raw control characters in texts kept as characters"),
    "not-utf8": Kind("mended", "{n} texts with bytes that are not UTF-8 read with a replacement character"),
    "lone-surrogate": Kind("mended", "{n} halves of surrogate pairs read as a replacement character"),
    "bare-quote": Kind("mended", "{n} unescaped quotation marks inside texts kept as characters"),
    "bad-punctuation": Kind("mended", "{n} missing or needless commas or brackets between events"),
    "text-timestamp": Kind("mended", "{n} times written as texts read as numbers"),
    "odd-args": Kind("mended", "{n} events whose args are no object read without them"),
    "no-name": Kind("mended", "{n} events without a name are called [no name]"),
    "repeated-events": Kind("mended", "traceEvents occurs {n} more times: all of them were read"),
    # Events that were not kept.
    "not-an-event": Kind("lost", "{n} members of traceEvents are no events (no object, or without a phase)"),
    "unreadable-event": Kind("lost", "{n} events are damaged beyond mending"),
    "no-timestamp": Kind("lost", "{n} events without a usable ts excluded"),
    "no-duration": Kind("lost", "{n} complete events without a usable dur excluded"),
    "negative-duration": Kind("lost", "{n} rows with a negative duration excluded"),
    "impossible-duration": Kind("lost", "{n} device rows that run far past the next row of their stream excluded"),
    "zero-timestamp": Kind("lost", "{n} rows at time 0, where nothing else is or nothing can be, excluded"),
    "far-away": Kind("lost", "{n} rows that start or end years away from the others excluded"),
    "stacks-capped": Kind("lost", "{n} call stacks dropped: the file has more different ones than are kept"),
    "unpaired-begin-end": Kind("lost", "{n} begin or end events (ph B, E) without their other half left out"),
    "bad-metadata": Kind("lost", "the file's metadata cannot be read in {n} places"),
    "trailing-data": Kind("lost", "{n} bytes after the end of the trace were not read"),
    # Nothing is wrong with the figures.
    "empty-events": Kind("note", "traceEvents is empty"),
    "far-away-window": Kind("note", "{n} marks of the profiler's window lie years away and are ignored"),
    "out-of-memory": Kind("note", "the allocator ran out of memory {n} times during the trace"),
    "autograd-profiler": Kind(
        "note",
        '{n} rows are of torch.autograd.profiler as it was before Kineto: kernels are the rows on "CUDA functions", '
        "named after their operators; it recorded no launches",
    ),
    "ascend-file": Kind(
        "note", "{n} rows are of Ascend's profiler, not of Kineto: their times are read, but nothing is concluded"
    ),
    "tensorflow-file": Kind(
        "note", "{n} rows are of JAX or TensorFlow, not of PyTorch: their times are read, but nothing is concluded"
    ),
    "chrome-file": Kind("note", "{n} rows are of Chrome's own tracing, not of PyTorch: nothing is concluded"),
    "unknown-origin": Kind(
        "note", "{n} rows, and none that the PyTorch profiler writes: of unknown origin, so nothing is concluded"
    ),
    "begin-end-rows": Kind("note", "{n} rows were written in two halves (ph B and E), and read as one"),
}

_RANK: Final[dict[Weight, int]] = {"note": 0, "mended": 1, "lost": 1, "cut": 2}
_QUALITIES: Final[tuple[Quality, Quality, Quality]] = ("complete", "salvaged", "partial")

# By quality, how a file falls short of a complete one: sentences without their end. Rows are mended where a file is
# damaged, and where another program has habits of its own.
DOUBTS: Final[Mapping[str, str]] = {
    "partial": "The file is cut off: figures hold for what is left of it",
    "salvaged": "Some of the file's rows were mended or left out as they were read",
}


class Tally:
    """Counts by code; `merge` adds those of another reader of the same file."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, code: str, count: int = 1) -> None:
        """Count `count` more cases of `code`, which must be one of `KINDS`."""
        if count:
            self._counts[code] += count

    def merge(self, counts: Mapping[str, int]) -> None:
        """Add the counts of another tally."""
        self._counts.update(counts)

    def reset(self, counts: Mapping[str, int]) -> None:
        """Replace all counts, by those that `counts()` gave earlier."""
        self._counts = Counter(counts)

    def counts(self) -> dict[str, int]:
        """Return the counts by code."""
        return dict(self._counts)

    def quality(self) -> Quality:
        """Return complete (nothing mended or lost), salvaged, or partial (the file ends early)."""
        return _QUALITIES[max((_RANK[KINDS[code].weight] for code in self._counts), default=0)]

    def warnings(self) -> tuple[TraceWarning, ...]:
        """Return one warning a code, the gravest first."""
        order = {code: place for place, code in enumerate(KINDS)}
        return tuple(
            TraceWarning(code, self._counts[code], KINDS[code].message.format(n=self._counts[code]))
            for code in sorted(self._counts, key=order.__getitem__)
        )
