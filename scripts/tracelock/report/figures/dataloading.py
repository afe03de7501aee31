"""The share of a step that waits for data, without the profiler and from the trace, by variant."""

from __future__ import annotations

from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import Frame, beside, empty, rows_frame, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.text import percent, span
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line

TITLE = "Share of data loading"


def caption(comparison: Comparison) -> str:
    """Return what is drawn, with the number of runs."""
    n = span(line.case.runs for line in measured_lines(comparison))
    return (
        "Bar: the loop waits in next(loader), share of the timed part (no profiler), median over runs; small circles: "
        f"runs (n = {n}). Diamond: DataLoader in the trace, share of the profiled steps. Bold: baseline."
    )


def present(comparison: Comparison) -> bool:
    """Return whether a share is known."""
    lines = measured_lines(comparison)
    return any(share is not None for line in lines for share in (line.case.loading.timed, line.case.loading.traced))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "Not known: the runs do not tell how long they waited for data.")
    texts = [percent(line.case.loading.timed) for line in measured_lines(comparison)]
    frame = rows_frame(
        comparison,
        width,
        [(TITLE, "per cent of a step that waits for the next batch, less is better")],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=texts,
    )
    for row, (line, text) in enumerate(zip(frame.lines, texts, strict=True)):
        _mark(frame, row, comparison, line)
        beside(frame.axes[0], row, text, bold=line.case.baseline)
    highest = frame.axes[0].get_xlim()[1]
    frame.axes[0].set_xlim(0, min(max(highest, 10), 101))
    frame.axes[0].set_xlabel("share of a step (%)")
    return frame.figure


def _mark(frame: Frame, row: int, comparison: Comparison, line: Line) -> None:
    axes, loading, bar = frame.axes[0], line.case.loading, row - 0.03 * frame.unit
    if loading.timed is not None:
        axes.barh(bar, 100 * loading.timed, height=0.4 * frame.unit, color=style.VERMILION, hatch="////",
                  edgecolor=style.PAPER, lw=0.6, zorder=2)  # fmt: skip
    for run in comparison.runs:
        if (run.environment, run.variant) == line.case.key and run.loading_share is not None:
            axes.plot(100 * run.loading_share, bar, "o", mfc=style.PAPER, mec=style.INK, ms=3, mew=0.7, zorder=3)
    if loading.traced is not None:
        axes.plot(100 * loading.traced, row + 0.29 * frame.unit, "D", color=style.INK, ms=3.2, zorder=4)
