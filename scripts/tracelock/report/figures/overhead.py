"""What the profiler costs, by variant: how much longer a profiled step takes than a timed one."""

from __future__ import annotations

from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import beside, empty, rows_frame, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.text import UNKNOWN, ratio, span
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line

TITLE = "What the profiler costs"


def caption(comparison: Comparison) -> str:
    """Return what is drawn, with the number of runs."""
    n = span(line.case.runs for line in measured_lines(comparison))
    return (
        f"Mean profiled step over mean step without the profiler, median over the runs (n = {n} a variant). What is "
        "compared comes from steps without the profiler; traces only explain it. Bold: baseline."
    )


def present(comparison: Comparison) -> bool:
    """Return whether any run was profiled."""
    return any(line.case.profiler_overhead is not None for line in measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "Not known: no run was profiled.")
    texts = [_told(line) for line in measured_lines(comparison)]
    frame = rows_frame(
        comparison,
        width,
        [(TITLE, "a profiled step against a timed one")],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=texts,
    )
    axes = frame.axes[0]
    for row, (line, text) in enumerate(zip(frame.lines, texts, strict=True)):
        value = line.case.profiler_overhead
        if value is not None:
            axes.plot([1.0, value], [row, row], color=style.MUTED, lw=1.6, zorder=2)
            axes.plot(value, row, "D" if line.case.baseline else "o", color=style.INK, ms=5, zorder=3)
        beside(axes, row, text, bold=line.case.baseline)
    axes.axvline(1.0, color=style.INK, lw=0.8, zorder=1)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.98), max(high, 1.05))
    axes.set_xlabel("profiled step (timed step = 1)")
    return frame.figure


def _told(line: Line) -> str:
    value = line.case.profiler_overhead
    return UNKNOWN if value is None else f"×{ratio(value)}"
