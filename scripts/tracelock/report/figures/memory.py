"""How allocated memory moves over the profiled steps: the baseline and the variants that matter beside it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import empty, measured_lines, panel_frame, row_labels, unlocked_note
from tracelock.report.text import byte_scale, time_scale
from tracelock.study.comparison import Case, Comparison, MemoryCurve
from tracelock.study.overview import Line

TITLE = "Memory over the profiled steps"
MOST = len(style.LINES)


def caption(comparison: Comparison) -> str:
    """Return what is drawn, and what is left out."""
    lines, chosen = _known(comparison), _chosen(comparison)
    text = (
        "Memory that the allocator had given out, one profiled run a variant, from the start of the recording. A curve "
        "that keeps rising step by step is a leak; one that rises once and stays is normal."
    )
    if len(lines) == len(chosen):
        return text
    return f"{text} {len(chosen)} of {len(lines)} variants: the baseline, the fastest, and the highest peaks."


def present(comparison: Comparison) -> bool:
    """Return whether a trace holds memory records."""
    return bool(_known(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        why = "Not known: no trace holds memory records. Set profile_memory: true to record them."
        return empty(width, TITLE, why)
    chosen = _chosen(comparison)
    curves = [_curve(line.case) for line in chosen]
    across, time_unit = time_scale([curve.time_us[-1] for curve in curves])
    up, unit = byte_scale([max(curve.allocated_bytes) for curve in curves])
    names = _names(comparison, chosen, width)
    frame = panel_frame(
        width,
        (TITLE, f"{unit} allocated on {_place(curves)}"),
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        height=2.4,
        legend=0.17 * len(chosen) + 0.06,
    )
    axes = frame.axes[0]
    for curve, look in zip(curves, style.LINES, strict=False):
        x = [time / across for time in curve.time_us]
        y = [value / up for value in curve.allocated_bytes]
        axes.step(x, y, where="post", color=look.color, ls=look.dash, lw=1.3)
    _legend(frame.figure, names, frame.legend_top)
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.set_xlabel(f"time since the start of the recording ({time_unit})")
    axes.set_ylabel(f"allocated ({unit})")
    return frame.figure


def _known(comparison: Comparison) -> list[Line]:
    return [line for line in measured_lines(comparison) if line.case.explained.memory]


def _chosen(comparison: Comparison) -> list[Line]:
    """Return at most `MOST` lines: the first baseline, the fastest of its environment, then by peak."""
    lines = _known(comparison)
    by_peak = sorted(lines, key=lambda line: -max(_curve(line.case).allocated_bytes))
    wanted = [*lines[:2], *by_peak]
    kept = list({line.case.key: line for line in wanted}.values())[:MOST]
    return [line for line in lines if line in kept]


def _curve(case: Case) -> MemoryCurve:
    """Return the curve of the accelerator where there is one, of those the one with the highest peak."""
    memory: Sequence[MemoryCurve] = case.explained.memory
    return max(memory, key=lambda curve: (curve.device != "cpu", max(curve.allocated_bytes)))


def _place(curves: Sequence[MemoryCurve]) -> str:
    names = sorted({"the host" if curve.device == "cpu" else curve.device for curve in curves})
    return " and ".join(names)


def _names(comparison: Comparison, lines: Sequence[Line], width: float) -> list[str]:
    names = row_labels(comparison, lines, width - 1.3)
    return [name + (" (baseline)" if line.case.baseline else "") for name, line in zip(names, lines, strict=True)]


def _legend(figure: Figure, names: Sequence[str], top: float) -> None:
    width, height = figure.get_size_inches()
    box: Axes = figure.add_axes((0, 0, 1, 1), zorder=-1)
    box.set_axis_off()
    box.set_xlim(0, width)
    box.set_ylim(0, height)
    for number, (name, look) in enumerate(zip(names, style.LINES, strict=False)):
        y = height - top - 0.09 - 0.17 * number
        box.plot([0.1, 0.5], [y, y], color=look.color, ls=look.dash, lw=1.3)
        box.text(0.58, y, name, size=8, va="center")
