"""Highest memory use by variant: on the device where there is one, else of the process."""

from __future__ import annotations

from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import beside, empty, rows_frame, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.peaks import memory_source
from tracelock.report.text import byte_scale, size
from tracelock.study.comparison import Comparison

TITLE = "Peak memory"


def caption(comparison: Comparison) -> str:
    """Return what is drawn."""
    return (
        f"Highest of all runs of a variant: {memory_source(comparison)[0]}. 1 GB = 1,000,000,000 bytes. Bold: baseline."
    )


def present(comparison: Comparison) -> bool:
    """Return whether any run tells its peak."""
    _, _, peak = memory_source(comparison)
    return any(peak(line.case.peaks) is not None for line in measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "Not known: no run tells its peak memory.")
    _, where, peak = memory_source(comparison)
    peaks = [peak(line.case.peaks) for line in measured_lines(comparison)]
    scale, unit = byte_scale([value for value in peaks if value is not None])
    frame = rows_frame(
        comparison,
        width,
        [(TITLE, f"{unit} {where}")],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=[size(value) for value in peaks],
    )
    for row, (line, value) in enumerate(zip(frame.lines, peaks, strict=True)):
        color = style.INK if line.case.baseline else style.BLUE
        if value is not None:
            frame.axes[0].barh(row, value / scale, height=0.5 * frame.unit, color=color, zorder=2)
        beside(frame.axes[0], row, size(value), bold=line.case.baseline)
    frame.axes[0].set_xlim(0, None)
    frame.axes[0].set_xlabel(f"peak memory ({unit})")
    return frame.figure
