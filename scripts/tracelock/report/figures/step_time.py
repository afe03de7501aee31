"""Time by variant, every run a point: what is compared comes first, the time per sample where batch sizes differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import Frame, beside, empty, heading_beside, rows_frame, unlocked_note
from tracelock.report.figures._layout import measured_lines
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
    batches = "Batch sizes differ, so the time per sample is compared; step times stand beside it. " if by else ""
    return (
        f"{batches}Measured without the profiler. Small circles: runs ({runs} a variant); large mark: their median; "
        f"bar: {percent(comparison.method.confidence)} interval. Arrow: clearly faster or slower than the "
        f"baseline{by} (baseline: diamond, bold); bar mark: no difference; circle: unclear; square: not judged."
    )


def present(comparison: Comparison) -> bool:
    """Return whether there is a run."""
    return bool(measured_lines(comparison))


@dataclass(frozen=True)
class Panel:
    """One of the figure's panels: what it shows of a line, and of a run."""

    title: str
    subtitle: str
    label: str
    of_line: Callable[[Line], Interval | None]
    of_run: Callable[[RunRow], float | None]
    scale: float = 1.0
    compared: bool = True  # marks say faster or slower only where the verdict is about this figure


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "No run has a result.")
    panels = _panels(comparison)
    right = [*_HEADING, *(_against(line) for line in measured_lines(comparison))]
    below = [caption(comparison), *unlocked_note(comparison)] if notes else []
    frame = rows_frame(comparison, width, [(panel.title, panel.subtitle) for panel in panels], below, right)
    for axes, panel in zip(frame.axes, panels, strict=True):
        for row, line in enumerate(frame.lines):
            _mark(axes, row, frame, panel, [panel.of_run(run) for run in _runs_of(comparison, line)])
        axes.set_xlabel(panel.label)
        axes.set_xlim(0, min(axes.get_xlim()[1] * 1.02, _widest(comparison, frame, panel)))
    for axes in frame.outer:
        heading_beside(axes, *_HEADING)
        for row, line in enumerate(frame.lines):
            beside(axes, row, _against(line), bold=line.case.baseline)
    return frame.figure


def _panels(comparison: Comparison) -> list[Panel]:
    """Return step time; where batch sizes differ the time per sample first, which is what is compared."""
    scale, unit = time_scale([line.case.step.value for line in measured_lines(comparison) if line.case.step])
    step = Panel(
        TITLE,
        f"{unit} per step, shorter is better",
        f"step time ({unit})",
        lambda line: line.case.step,
        lambda run: run.step_us,
        scale,
    )
    if not _batches_differ(comparison):
        return [step]
    times = [line.case.sample.value for line in measured_lines(comparison) if line.case.sample]
    scale, unit = time_scale(times)
    sample = Panel(
        "Time per sample",
        f"{unit} per sample, shorter is better",
        f"time per sample ({unit})",
        lambda line: line.case.sample,
        lambda run: run.step_us * run.steps / run.samples if run.samples else None,
        scale,
    )
    return [sample, replace(step, title="Step time", compared=False)]


def _widest(comparison: Comparison, frame: Frame, panel: Panel) -> float:
    """Return where the axis ends at most: intervals of two runs may reach far beyond every run."""
    runs = [panel.of_run(run) for line in frame.lines for run in _runs_of(comparison, line)]
    return 2 * max((value for value in runs if value is not None), default=1.0) / panel.scale


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


def _against(line: Line) -> str:
    if not line.against:
        return "baseline" if line.case.baseline else "not compared"
    found = line.against.difference.ratio
    return f"×{ratio(found.value)} ({ratio_interval(found)})"


def _mark(axes: Axes, row: int, frame: Frame, panel: Panel, runs: Sequence[float | None]) -> None:
    """Draw the runs of a row above their median and its interval; the baseline also as a line through its rows."""
    line = frame.lines[row]
    interval = panel.of_line(line)
    if interval is None:
        return
    look = style.VERDICTS[verdict(line) if panel.compared or line.case.baseline else "unclear"]
    ends, middle = [interval.low / panel.scale, interval.high / panel.scale], interval.value / panel.scale
    y = [row + 0.17 * frame.unit] * 2
    axes.plot(ends, y, color=look.color, lw=1.6, solid_capstyle="butt", zorder=2)
    axes.plot(ends, y, "|", color=look.color, ms=7, mew=1.2, zorder=2)
    axes.plot(middle, y[0], look.marker, color=look.color, ms=5.5, mec=style.PAPER, mew=0.5, zorder=3)
    values = [value / panel.scale for value in runs if value is not None]
    above = [row - 0.14 * frame.unit] * len(values)
    axes.plot(values, above, "o", mfc="none", mec=style.INK, ms=3, mew=0.7, zorder=4)
    if line.case.baseline:
        rows = [n for n, other in enumerate(frame.lines) if other.case.environment == line.case.environment]
        low, high = rows[0] + 0.5 * frame.unit - 1, rows[-1] + 0.5 * frame.unit
        axes.vlines(middle, low, high, color=style.MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
