"""Highest memory use by variant: on the device where there is one, else of the process."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import beside, empty, measured_lines, rows_frame, unlocked_note
from tracelock.report.text import byte_scale, size
from tracelock.study.comparison import Comparison
from tracelock.study.records import PeakMemory

TITLE = "Peak memory"
_Peak = Callable[[PeakMemory], int | None]


def caption(comparison: Comparison) -> str:
    """Return what is drawn."""
    what = (
        "allocated on the device" if _on_device(comparison) else "resident memory of the process, without its workers"
    )
    return f"Highest of all runs of a variant: {what}. 1 GB = 1,000,000,000 bytes. Bold: baseline."


def present(comparison: Comparison) -> bool:
    """Return whether any run tells its peak."""
    peak = _peak(comparison)
    return any(peak(line.case.peaks) is not None for line in measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "Not known: no run tells its peak memory.")
    peak = _peak(comparison)
    peaks = [peak(line.case.peaks) for line in measured_lines(comparison)]
    scale, unit = byte_scale([value for value in peaks if value is not None])
    where = "on the device" if _on_device(comparison) else "of the process"
    frame = rows_frame(
        comparison,
        width,
        [(TITLE, f"{unit} {where}")],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=[size(value) for value in peaks],
    )
    for row, (line, value) in enumerate(zip(frame.lines, peaks, strict=True)):
        color = style.INK if line.case.baseline else style.BLUE
        frame.axes[0].barh(row, (value or 0) / scale, height=0.5, color=color, zorder=2)
        beside(frame.axes[0], row, size(value), bold=line.case.baseline)
    frame.axes[0].set_xlabel(f"peak memory ({unit})")
    return frame.figure


def _on_device(comparison: Comparison) -> bool:
    return any(line.case.peaks.peak_allocated_bytes is not None for line in measured_lines(comparison))


def _peak(comparison: Comparison) -> _Peak:
    if _on_device(comparison):
        return lambda peaks: peaks.peak_allocated_bytes
    return lambda peaks: peaks.peak_rss_bytes
