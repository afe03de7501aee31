"""How allocated memory moves over the profiled steps: the baseline and the variants that matter beside it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import empty, panels_frame, unlocked_note
from tracelock.report.figures._layout import all_lines, row_labels, wrapped
from tracelock.report.text import byte_scale, time_scale
from tracelock.study.comparison import Case, Comparison, MemoryCurve
from tracelock.study.overview import Line

TITLE = "Memory over the profiled steps"
MOST = 4


def caption(comparison: Comparison) -> str:
    """Return what is drawn, and what is left out."""
    lines, chosen = _known(comparison), _chosen(comparison)
    text = (
        "Memory that the allocator had given out, one profiled run a variant, from its first record on; a step is that "
        "run's mean profiled step. A curve that keeps rising from step to step is a leak; one that rises once and "
        "stays is normal."
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
    across, time_unit = _time_scale(curves)
    up, unit = byte_scale([max(curve.allocated_bytes) for curve in curves])
    frame = panels_frame(
        width,
        (TITLE, f"{unit} allocated on {_place(curves)}"),
        ["\n".join(wrapped(text, width - 0.75)) for text in row_labels(comparison, chosen)],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        height=0.95 if len(chosen) > 1 else 2.0,
    )
    for axes, line, curve, scale in zip(frame.axes, chosen, curves, across, strict=True):
        color = style.INK if line.case.baseline else style.BLUE
        x = [time / scale for time in curve.time_us]
        y = [value / up for value in curve.allocated_bytes]
        axes.fill_between(x, y, step="post", color=color, alpha=0.18, lw=0)
        axes.step(x, y, where="post", color=color, lw=1.0)
        axes.set_ylabel(unit)
    frame.axes[0].set_xlim(0, None)
    frame.axes[0].set_ylim(0, None)
    frame.axes[-1].set_xlabel(f"time since the first record ({time_unit})")
    return frame.figure


def _known(comparison: Comparison) -> list[Line]:
    return [line for line in all_lines(comparison) if line.case.explained.memory]


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


def _time_scale(curves: Sequence[MemoryCurve]) -> tuple[list[float], str]:
    """Return what each curve's microseconds are divided by: its step, so that curves of slow and fast runs compare."""
    steps = [curve.step_us for curve in curves if curve.step_us]
    if len(steps) == len(curves):
        return steps, "profiled steps"
    scale, unit = time_scale([curve.time_us[-1] for curve in curves])
    return [scale] * len(curves), unit


def _place(curves: Sequence[MemoryCurve]) -> str:
    names = sorted({"the host" if curve.device == "cpu" else curve.device for curve in curves})
    return " and ".join(names)
