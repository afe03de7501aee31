"""Which peak of memory a study can tell: that of the device, of the process with its workers, or of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tracelock.study.comparison import Comparison
from tracelock.study.records import PeakMemory

Peak: TypeAlias = Callable[[PeakMemory], int | None]

_SOURCES: tuple[tuple[str, str, Peak], ...] = (
    ("memory allocated on the device", "on the device", lambda peaks: peaks.peak_allocated_bytes),
    (
        "resident memory of the process and its workers together (shared pages count in each)",
        "of the process and its workers",
        lambda peaks: peaks.peak_tree_rss_bytes,
    ),
    ("resident memory of the process, without its workers", "of the process", lambda peaks: peaks.peak_rss_bytes),
)


def memory_source(comparison: Comparison) -> tuple[str, str, Peak]:
    """Return the first figure that any case tells: what it is, its short name, and how to read it."""
    known = (source for source in _SOURCES if any(source[2](case.peaks) is not None for case in comparison.cases))
    return next(known, _SOURCES[-1])
