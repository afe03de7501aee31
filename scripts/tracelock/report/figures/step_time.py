"""Step time by variant, every run a point; and throughput, where variants take another number of samples a step."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import (
    Frame,
    beside,
    empty,
    heading_beside,
    measured_lines,
    rows_frame,
    unlocked_note,
)
from tracelock.report.text import percent, plural, ratio, ratio_interval, time_scale
from tracelock.study.comparison import Comparison
from tracelock.study.outcome import RunRow
from tracelock.study.overview import Line
from tracelock.study.stats import Interval

TITLE = "Step time by variant"
_HEADING = ("time against", "baseline (95 %)")


def caption(comparison: Comparison) -> str:
    """Return what is drawn, with the number of runs."""
    counts = sorted({line.case.runs for line in measured_lines(comparison)})
    runs = plural(counts[0], "run") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} runs"
    by = " by the time per sample" if _batches_differ(comparison) else ""
    return (
        f"Measured without the profiler. Small circles: runs ({runs} a variant); large mark: their median; bar: "
        f"{percent(comparison.method.confidence)} bootstrap interval. Arrow: clearly faster or slower than the "
        f"baseline{by} (baseline: diamond, bold); grey circle: no clear difference; square: not judged. "
        f"{comparison.method.few_runs}"
    )


def present(comparison: Comparison) -> bool:
    """Return whether there is a run."""
    return bool(measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "No run has a result.")
    scale, unit = time_scale([line.case.step.value for line in measured_lines(comparison) if line.case.step])
    titles = [(TITLE, f"{unit} per step, shorter is better")]
    if _batches_differ(comparison):
        titles.append(("Throughput", "samples per second, more is better"))
    right = [*_HEADING, *(_against(line) for line in measured_lines(comparison))]
    below = [caption(comparison), *unlocked_note(comparison)] if notes else []
    frame = rows_frame(comparison, width, titles, below, right)
    for row, line in enumerate(frame.lines):
        runs = _runs_of(comparison, line)
        _mark(frame.axes[0], row, line, line.case.step, [run.step_us for run in runs], scale)
        if len(frame.axes) > 1:
            rates = [run.throughput_per_s for run in runs if run.throughput_per_s is not None]
            _mark(frame.axes[1], row, line, line.case.throughput, rates, 1.0, mirrored=True)
        if line.case.baseline:
            _reference(frame, row, scale)
        for axes in frame.outer:
            beside(axes, row, _against(line), bold=line.case.baseline)
    for axes in frame.outer:
        heading_beside(axes, *_HEADING)
    frame.axes[0].set_xlabel(f"step time ({unit})")
    if len(frame.axes) > 1:
        frame.axes[1].set_xlabel("throughput (samples/s)")
    for axes in frame.axes:
        _from_zero(axes)
    return frame.figure


def verdict(line: Line) -> str:
    """Return by what name a line is drawn."""
    if line.case.baseline and not line.against:
        return "baseline"
    return (line.against.verdict if line.against else None) or "not judged"


def _batches_differ(comparison: Comparison) -> bool:
    lines = measured_lines(comparison)
    per_step = [line.case.step.value / line.case.sample.value for line in lines if line.case.step and line.case.sample]
    return len(per_step) == len(lines) and max(per_step) > 1.001 * min(per_step)


def _runs_of(comparison: Comparison, line: Line) -> list[RunRow]:
    return [run for run in comparison.runs if (run.environment, run.variant) == line.case.key]


def _reference(frame: Frame, row: int, scale: float) -> None:
    """Draw the baseline in `row` as a dashed line over the rows of its environment."""
    case = frame.lines[row].case
    rows = [number for number, line in enumerate(frame.lines) if line.case.environment == case.environment]
    for axes, interval, unit in zip(frame.axes, (case.step, case.throughput), (scale, 1.0), strict=False):
        if interval:
            place = interval.value / unit
            axes.vlines(place, rows[0] - 0.5, rows[-1] + 0.5, color=style.MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)


def _against(line: Line) -> str:
    if not line.against:
        return "baseline" if line.case.baseline else "not compared"
    found = line.against.difference.ratio
    return f"×{ratio(found.value)} ({ratio_interval(found)})"


def _mark(
    axes: Axes,
    row: int,
    line: Line,
    interval: Interval | None,
    runs: list[float],
    scale: float,
    mirrored: bool = False,
) -> None:
    """Draw the runs of a line above its median and interval; `mirrored` where more is better."""
    if interval is None:
        return
    look = style.VERDICTS[verdict(line)]
    marker = {"<": ">", ">": "<"}.get(look.marker, look.marker) if mirrored else look.marker
    low, high, below = interval.low / scale, interval.high / scale, row + 0.17
    axes.plot([low, high], [below, below], color=look.color, lw=1.6, solid_capstyle="butt", zorder=2)
    axes.plot([low, high], [below, below], "|", color=look.color, ms=7, mew=1.2, zorder=2)
    axes.plot(interval.value / scale, below, marker, color=look.color, ms=5.5, mec=style.PAPER, mew=0.5, zorder=3)
    above = [row - 0.14] * len(runs)
    axes.plot([value / scale for value in runs], above, "o", mfc="none", mec=style.INK, ms=3, mew=0.7, zorder=4)


def _from_zero(axes: Axes) -> None:
    axes.set_xlim(0, axes.get_xlim()[1] * 1.02)
