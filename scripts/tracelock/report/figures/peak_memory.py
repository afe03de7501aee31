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
    return f"Highest of all runs of a variant: {_source(comparison)[0]}. 1 GB = 1,000,000,000 bytes. Bold: baseline."


def present(comparison: Comparison) -> bool:
    """Return whether any run tells its peak."""
    _, _, peak = _source(comparison)
    return any(peak(line.case.peaks) is not None for line in measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "Not known: no run tells its peak memory.")
    _, where, peak = _source(comparison)
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
            frame.axes[0].barh(row, value / scale, height=0.5, color=color, zorder=2)
        beside(frame.axes[0], row, size(value), bold=line.case.baseline)
    frame.axes[0].set_xlim(0, None)
    frame.axes[0].set_xlabel(f"peak memory ({unit})")
    return frame.figure


def _source(comparison: Comparison) -> tuple[str, str, _Peak]:
    """Return the figure that is known: what it is, its short name, and how to read it."""
    sources: tuple[tuple[str, str, _Peak], ...] = (
        ("memory allocated on the device", "on the device", lambda peaks: peaks.peak_allocated_bytes),
        (
            "resident memory of the process and its workers together (shared pages count in each)",
            "of the process and its workers",
            lambda peaks: peaks.peak_tree_rss_bytes,
        ),
        ("resident memory of the process, without its workers", "of the process", lambda peaks: peaks.peak_rss_bytes),
    )
    lines = measured_lines(comparison)
    known = (source for source in sources if any(source[2](line.case.peaks) is not None for line in lines))
    return next(known, sources[-1])
