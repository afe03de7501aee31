"""Figures whose rows are cases and whose marks are stacked bars: the parts of a whole, with a legend of those shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from tracelock.report.figures._frame import beside, rows_frame
from tracelock.report.figures._stack import legend, legend_room, shown, stack
from tracelock.report.style import Look
from tracelock.report.text import UNKNOWN, time, time_scale
from tracelock.study.comparison import Comparison

Parts = Sequence[Mapping[str, float]]  # of each row, by key; empty where they are not known


@dataclass(frozen=True)
class Bars:
    """Stacked bars, one a case: title, subtitle, what the axis shows, and what is drawn."""

    title: str
    subtitle: str
    axis: str
    parts: Parts
    named: Mapping[str, str]  # the parts of the legend: key → words
    looks: Mapping[str, Look]
    texts: Sequence[str]  # at the right of each row
    most: float  # end of the axis


def time_bars(heads: tuple[str, str, str], parts: Parts, words: Mapping[str, str], looks: Mapping[str, Look]) -> Bars:
    """Return bars of microseconds in the unit that suits the longest.

    Parameters
    ----------
    heads
        Title, subtitle and axis, the unit left out.
    """
    totals = [sum(part.values()) for part in parts if part]
    scale, unit = time_scale(totals)
    return Bars(
        heads[0],
        f"{unit} {heads[1]}",
        f"{heads[2]} ({unit})",
        [{key: value / scale for key, value in part.items()} for part in parts],
        {key: words[key] for key in shown([part for part in parts if part])},
        looks,
        [time(sum(part.values())) if part else UNKNOWN for part in parts],
        1.01 * max([*totals, 1e-9]) / scale,
    )


def draw_bars(comparison: Comparison, width: float, what: Bars, notes: Sequence[str]) -> Figure:
    """Return the figure of some bars."""
    room = legend_room(list(what.named.values()), width)
    frame = rows_frame(comparison, width, [(what.title, what.subtitle)], notes, right=what.texts, legend=room)
    legend(frame.figure, what.named, what.looks, frame.legend_top)
    axes = frame.axes[0]
    for row, (line, part, text) in enumerate(zip(frame.lines, what.parts, what.texts, strict=True)):
        stack(axes, row, part, what.looks, 0.62 * frame.unit)
        beside(axes, row, text, bold=line.case.baseline)
    axes.set_xlim(0, what.most)
    axes.set_xlabel(what.axis)
    return frame.figure
