"""Which traces of a study are still there, in words."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.report.text import size
from tracelock.study.comparison import Comparison
from tracelock.study.outcome import RunRow


def is_gone(run: RunRow) -> bool:
    """Return whether a run had a trace that was taken away after its analysis."""
    return run.trace is None and run.trace_bytes is not None


def traces_text(comparison: Comparison) -> str | None:
    """Return how many traces stayed and why the others went, None where none went."""
    gone = [run for run in comparison.runs if is_gone(run)]
    if not gone:
        return None
    kept = [run for run in comparison.runs if run.trace is not None]
    why = ", ".join(dict.fromkeys(run.unknown.get("profiled.trace", "") for run in gone))
    stay = f"; {_bytes(kept)} stay" if kept else ""
    count = f"{len(kept)} of {len(kept) + len(gone)} traces are kept{stay}."
    return f"{count} Of the others ({_bytes(gone)}), each was {why}. Their analyses stay."


def _bytes(runs: Sequence[RunRow]) -> str:
    return size(sum(run.trace_bytes or 0 for run in runs))
